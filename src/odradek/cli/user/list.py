"""`odradek user list`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.admin.users import read_users
from odradek.cli.client.options import cluster_options
from odradek.cli.framework.commands import command
from odradek.cli.framework.output import print_columns, print_json, say

if TYPE_CHECKING:
    from odradek.admin.cluster import Cluster


@command(name="list", examples=[("all users", "odradek user list")])
@cluster_options
def list_users(cluster: Cluster, as_json: bool) -> None:
    """List the users with SCRAM credentials, their mechanisms and iterations."""
    found = read_users(cluster)
    if as_json:
        for each in found:
            print_json(each._asdict())
    elif found:
        print_columns(["USER", "MECHANISM", "ITERATIONS"], found)
    else:
        say("no users; `odradek user add NAME` adds one")
