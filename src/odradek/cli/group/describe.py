"""`odradek group describe`: state, members, assignment and lag of groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.admin.groups import read_group, read_lags
from odradek.admin.time_lag import add_time_lags
from odradek.cli.client.options import cluster_options, groups_argument
from odradek.cli.framework.commands import command
from odradek.cli.framework.output import print_json, say
from odradek.cli.group.text import as_object, print_group

if TYPE_CHECKING:
    from odradek.admin.cluster import Cluster


@command(
    examples=[
        ("state, members, assignment, lag", "odradek group describe billing"),
        ("the total lag, for a script", "odradek group describe billing --format json | jq .lag"),
    ]
)
@groups_argument
@cluster_options
def describe(names: tuple[str, ...], cluster: Cluster, as_json: bool) -> None:
    """Show state, members, assignment and lag of groups.

    Lag is the number of records that the group has not read; time lag is the age of the first of them.
    """
    for number, name in enumerate(dict.fromkeys(names)):
        state = read_group(cluster, name)
        lags = read_lags(cluster, state)
        add_time_lags(cluster, lags)
        if as_json:
            print_json(as_object(state, lags))
        else:
            if number:
                say()
            print_group(state, lags)
