"""One file per page: its routes, what it asks the cluster, and the view that it renders."""

from odradek.console.pages import overview, topic, topics

PAGES = (overview, topics, topic)
