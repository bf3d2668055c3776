"""`odradek group list`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.admin import groups
from odradek.admin.broker_requests import BrokerRequests
from odradek.cli.client.options import cluster_options
from odradek.cli.framework.commands import command
from odradek.cli.framework.options import state_option
from odradek.cli.framework.output import note_missing, print_columns, print_json, say
from odradek.security.authorizer import Operation

if TYPE_CHECKING:
    from odradek.admin.cluster import Cluster


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
    found, missing = groups.list_groups(BrokerRequests(cluster, groups.LIST_TIMEOUT_S))
    rows = [each for each in found if not states or each.state in states]
    if as_json:
        for name, state, kind in rows:
            print_json({"group": name, "state": state, "type": kind})
    elif rows:
        print_columns(["GROUP", "STATE", "TYPE"], rows)
    elif not cluster.may(Operation.DESCRIBE):
        say(f"no groups that {cluster.principal} may describe; an admin allows it with `odradek acl add`")
    else:
        say("no groups" + (" in this state" if states else "; a consumer with a group.id creates one"))
    note_missing(missing, "groups")
