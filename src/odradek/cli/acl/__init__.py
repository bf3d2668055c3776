"""`odradek acl`: access control lists."""

from __future__ import annotations

from odradek.cli.framework.commands import group


@group(
    lazy={
        "add": ("odradek.cli.acl.add:add", "Allow or deny operations to principals."),
        "list": ("odradek.cli.acl.list:list_acls", "List the rules of the cluster."),
        "remove": ("odradek.cli.acl.remove:remove", "Remove rules."),
        "check": ("odradek.cli.acl.check:check", "Show whether a principal may do something, and which rule decides."),
    },
    examples=[
        ("alice may write to a topic", "odradek acl add --allow-principal User:alice --producer --topic orders"),
        (
            "bob may read it in a group",
            "odradek acl add --allow-principal User:bob --consumer --topic orders --group a",
        ),
        ("the rule by which alice may write", "odradek acl check User:alice Write topic:orders"),
    ],
)
def acl() -> None:
    """Add, list, remove and check access control lists, as kafka-acls does.

    The brokers need authorizer.class.name; without it they refuse these commands.
    """
