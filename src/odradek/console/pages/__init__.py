"""One file per page: its routes, what it asks the cluster, and the view that it renders."""

from odradek.console.pages import brokers, groups, messages, overview, produce, rigs, topic, topics, transactions

PAGES = (overview, topics, topic, messages, produce, groups, brokers, transactions, rigs)
