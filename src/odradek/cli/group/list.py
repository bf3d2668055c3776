"""`odradek group list`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.cli.client.options import cluster_options
from odradek.cli.framework.commands import command
from odradek.cli.framework.failure import Failure
from odradek.cli.framework.options import state_option
from odradek.cli.framework.output import print_columns, print_json, say
from odradek.cli.group.state import state_name

if TYPE_CHECKING:
    from odradek.cli.client.cluster import Cluster


REQUEST_TIMEOUT_S = 15.0


STATES = ("Empty", "PreparingRebalance", "CompletingRebalance", "Rebalancing", "Stable")


@command(
    "list",
    examples=[
        ("every group", "odradek group list"),
        ("groups without members", "odradek group list --state Empty"),
    ],
)
@state_option("groups", STATES)
@cluster_options
def list_groups(states: tuple[str, ...], cluster: Cluster, as_json: bool) -> None:
    """List the groups of the cluster."""
    found = cluster.finish(cluster.admin().list_consumer_groups(request_timeout=REQUEST_TIMEOUT_S), "groups")
    rows = sorted(
        (each.group_id, state_name(each.state), each.type.name.lower() if each.type is not None else "")
        for each in found.valid
        if not states or state_name(each.state) in states
    )
    for error in found.errors:
        raise Failure(f"groups: {error}")
    if as_json:
        for name, state, kind in rows:
            print_json({"group": name, "state": state, "type": kind})
    elif rows:
        print_columns(["GROUP", "STATE", "TYPE"], rows)
    else:
        say("no groups" + (" in this state" if states else "; a consumer with a group.id creates one"))
