"""One file per section of the console: its routes, the requests to the cluster, and the views that it renders."""

from odradek.console.pages import access, examples, groups, login, overview, pipelines, records, topics, transactions

SECTIONS = (overview, topics, records, groups, transactions, pipelines, examples, access, login)
ROUTES = [*(route for section in SECTIONS for route in section.ROUTES), *overview.BROKER_ROUTES]
