"""`odradek user remove`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from odradek.admin.users import read_users, remove_credentials
from odradek.cli.client.options import cluster_options
from odradek.cli.framework.commands import command
from odradek.cli.framework.confirmation import confirm, yes_option
from odradek.cli.framework.output import print_json, say
from odradek.conventions.failures import Failure

if TYPE_CHECKING:
    from odradek.admin.cluster import Cluster


@command(
    examples=[
        ("after a question", "odradek user remove alice"),
        ("without a question", "odradek user remove alice bob --yes"),
    ]
)
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@yes_option
@cluster_options
def remove(names: tuple[str, ...], yes: bool, cluster: Cluster, as_json: bool) -> None:
    """Remove users with all their SCRAM credentials.

    Connections that are open stay authenticated; connections.max.reauth.ms of the broker bounds for how long.
    """
    distinct = list(dict.fromkeys(names))
    credentials = read_users(cluster, distinct)
    missing = [name for name in distinct if name not in {credential.user for credential in credentials}]
    if missing:
        raise Failure(f"there is no user {', '.join(missing)}; `odradek user list` shows the users")
    confirm(f"Remove {', '.join(distinct)}?", yes, refusal="nothing was removed")
    remove_credentials(cluster, credentials)
    for name in distinct:
        if as_json:
            print_json({"user": name, "removed": True})
        else:
            say(f"removed user {name}")
