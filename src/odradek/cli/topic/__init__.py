"""`odradek topic`: create, list, describe, alter and delete topics."""

from __future__ import annotations

from odradek.cli.framework.commands import group


@group(
    lazy={
        "create": ("odradek.cli.topic.create:create", "Create a topic."),
        "list": ("odradek.cli.topic.list:list_topics", "List the topics of the cluster."),
        "describe": ("odradek.cli.topic.describe:describe", "Show partitions, offsets and configs of topics."),
        "alter": ("odradek.cli.topic.alter:alter", "Add partitions to a topic, or change its configs."),
        "delete": ("odradek.cli.topic.delete:delete", "Delete topics and all their records."),
    },
    examples=[
        ("a topic with six partitions", "odradek topic create pump --partitions 6"),
        ("where its records are", "odradek topic describe pump"),
    ],
)
def topic() -> None:
    """Create, list, describe, alter and delete topics."""
