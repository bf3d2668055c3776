"""`odradek group`: list, describe, reset and delete consumer groups."""

from __future__ import annotations

from odradek.cli.framework.commands import group


@group(
    "group",
    lazy={
        "list": ("odradek.cli.group.list:list_groups", "List the groups of the cluster."),
        "describe": ("odradek.cli.group.describe:describe", "Show state, members, assignment and lag of groups."),
        "reset": ("odradek.cli.group.reset:reset", "Move the committed offsets of a group."),
        "delete": ("odradek.cli.group.delete:delete", "Delete groups and their committed offsets."),
    },
    examples=[
        ("members, assignment and lag", "odradek group describe billing"),
        (
            "read everything again (a dry run; --execute applies it)",
            "odradek group reset billing --to-earliest",
        ),
    ],
)
def consumer_group() -> None:
    """List, describe, reset and delete consumer groups."""
