"""One file per page: its routes, what it asks the cluster, and the view that it renders."""

from odradek.console.pages import (
    brokers,
    dead_letters,
    groups,
    messages,
    overview,
    pipelines,
    produce,
    rigs,
    topic,
    topics,
    transactions,
)

PAGES = (overview, topics, topic, messages, produce, groups, brokers, transactions, pipelines, dead_letters, rigs)
