"""One file per page: its routes, the requests to the cluster that it needs, and the view that it renders."""

from odradek.console.pages import (
    access,
    access_quotas,
    access_rules,
    brokers,
    dead_letters,
    groups,
    login,
    overview,
    pipelines,
    produce,
    records,
    rigs,
    topic,
    topic_groups,
    topics,
    transactions,
)

PAGES = (
    overview,
    topics,
    topic,
    topic_groups,
    records,
    produce,
    groups,
    brokers,
    transactions,
    pipelines,
    dead_letters,
    rigs,
    access,
    access_rules,
    access_quotas,
    login,
)
