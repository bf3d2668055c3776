"""`odradek quota`: set, list and remove the quotas of users, client ids and addresses."""

from __future__ import annotations

from odradek.cli.framework.commands import group


@group(
    "quota",
    lazy={
        "set": ("odradek.cli.quota.set:set_quota", "Limit a user, a client id or an address."),
        "list": ("odradek.cli.quota.list:list_quotas", "List the quotas of the cluster."),
        "remove": ("odradek.cli.quota.remove:remove", "Remove quotas of a user, a client id or an address."),
    },
    examples=[
        ("1 MiB/s for what alice writes to each broker", "odradek quota set --user alice producer_byte_rate=1048576"),
        ("a default for every client id", "odradek quota set --client-id-default consumer_byte_rate=10485760"),
        ("10 new connections a second from each address", "odradek quota set --ip-default connection_creation_rate=10"),
        ("every quota", "odradek quota list"),
    ],
)
def quota() -> None:
    """Set, list and remove the quotas of users, client ids and addresses.

    A quota applies to each broker. Of several that match a client, the most specific applies: of a user and client id,
    then of a user, then of a client id; a name comes before a default.
    """
