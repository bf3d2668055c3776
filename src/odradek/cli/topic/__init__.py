"""`odradek topic`: create, list, describe, alter, trim and delete topics."""

from __future__ import annotations

from odradek.cli.framework.commands import group


@group(
    lazy={
        "create": ("odradek.cli.topic.create:create", "Create a topic."),
        "list": ("odradek.cli.topic.list:list_topics", "List the topics of the cluster."),
        "describe": ("odradek.cli.topic.describe:describe", "Show partitions, offsets and settings of topics."),
        "alter": ("odradek.cli.topic.alter:alter", "Add partitions to a topic, or change its settings."),
        "trim": ("odradek.cli.topic.trim:trim", "Delete the oldest records of a topic."),
        "delete": ("odradek.cli.topic.delete:delete", "Delete topics and all their records."),
    },
    examples=[
        ("a topic with six partitions", "odradek topic create pump --partitions 6"),
        ("its partitions, offsets and settings", "odradek topic describe pump"),
    ],
)
def topic() -> None:
    """Create, list, describe, alter, trim and delete topics."""
