"""`odradek group`: list, describe and delete consumer groups; `group_reset` moves their offsets."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from odradek.cli.commands import command, group
from odradek.cli.failure import Failure
from odradek.cli.options import cluster_options
from odradek.cli.output import print_columns, print_json, say
from odradek.cli.parameter_types import TEXT

if TYPE_CHECKING:
    from odradek.cli.cluster import Cluster

REQUEST_TIMEOUT_S = 15.0
STATES = ("Empty", "PreparingRebalance", "CompletingRebalance", "Rebalancing", "Stable")


@group(
    "group",
    lazy={
        "list": ("odradek.cli.group:list_groups", "List the groups of the cluster."),
        "describe": ("odradek.cli.group:describe", "Show state, members, assignment and lag of groups."),
        "reset": ("odradek.cli.group_reset:reset", "Move the committed offsets of a group."),
        "delete": ("odradek.cli.group:delete", "Delete groups and their committed offsets."),
    },
    examples=[
        ("who reads what, and how far behind", "odradek group describe billing"),
        (
            "read everything again (shows what would change; --execute does it)",
            "odradek group reset billing --to-earliest",
        ),
    ],
)
def consumer_group() -> None:
    """List, describe, reset and delete consumer groups."""


@command(
    "list",
    examples=[
        ("every group", "odradek group list"),
        ("those without members", "odradek group list --state Empty"),
    ],
)
@click.option(
    "--state",
    "states",
    type=click.Choice(STATES, case_sensitive=False),
    metavar="STATE",
    multiple=True,
    help=f"Only groups in this state: {', '.join(STATES[:-1])} or {STATES[-1]}. Repeatable.",
)
@cluster_options
def list_groups(states: tuple[str, ...], cluster: Cluster, as_json: bool) -> None:
    """List the groups of the cluster."""
    from odradek.cli.group_state import state_name  # noqa: PLC0415 - help does not need it

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
        say("no groups" + (" in this state" if states else " yet; a consumer with a group.id makes one"))


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
    from odradek.cli.group_state import add_time_lags, read_group, read_lags  # noqa: PLC0415
    from odradek.cli.group_text import as_object, print_group  # noqa: PLC0415

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


@command(
    examples=[
        ("after a question", "odradek group delete billing"),
        ("several, without a question", "odradek group delete billing audit --yes"),
    ]
)
@click.argument("names", metavar="NAME...", nargs=-1, required=True, type=TEXT)
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@cluster_options
def delete(names: tuple[str, ...], yes: bool, cluster: Cluster, as_json: bool) -> None:
    """Delete groups and their committed offsets. A group with members is not deleted."""
    if not yes:
        if not sys.stdin.isatty():
            raise click.UsageError("deleting takes --yes where nobody can be asked")
        click.confirm(f"Delete {', '.join(names)} and what they have committed?", abort=True, err=True)
    failures = []
    unique = list(dict.fromkeys(names))
    for name, future in cluster.admin().delete_consumer_groups(unique, request_timeout=REQUEST_TIMEOUT_S).items():
        try:
            cluster.finish(future, f"group {name}")
        except Failure as failure:
            failures.append(failure)
            continue
        if as_json:
            print_json({"group": name, "deleted": True})
        else:
            say(f"deleted group {name}")
    if failures:
        raise Failure("; ".join(failure.message for failure in failures))
