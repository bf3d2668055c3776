"""`odradek group describe`: state, members, assignment and lag of groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from odradek.cli.framework.commands import command
from odradek.cli.framework.options import cluster_options
from odradek.cli.framework.output import print_json, say
from odradek.cli.framework.parameter_types import TEXT
from odradek.cli.group.state import add_time_lags, read_group, read_lags
from odradek.cli.group.text import as_object, print_group

if TYPE_CHECKING:
    from odradek.cli.client.cluster import Cluster


@command(
    examples=[
        ("state, members, assignment, lag", "odradek group describe billing"),
        ("the total lag, for a script", "odradek group describe billing --format json | jq .lag"),
    ]
)
@click.argument("names", metavar="NAME...", nargs=-1, required=True, type=TEXT)
@cluster_options
def describe(names: tuple[str, ...], cluster: Cluster, as_json: bool) -> None:
    """Show state, members, assignment and lag of groups.

    Lag is how many records a group has yet to read; time lag is how old the first of them is.
    """
    for place, name in enumerate(dict.fromkeys(names)):
        state = read_group(cluster, name)
        lags = read_lags(cluster, state)
        add_time_lags(cluster, lags)
        if as_json:
            print_json(as_object(state, lags))
        else:
            if place:
                say()
            print_group(state, lags)
