"""`odradek group`: list, describe, reset and delete consumer groups."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from typing import IO, TYPE_CHECKING, Any

import click

from odradek.admin import groups, resets
from odradek.admin.broker_requests import BrokerRequests
from odradek.admin.groups import add_time_lags, longest_time_lag
from odradek.cli.client.options import cluster_options, group_argument, groups_argument, nothing_visible
from odradek.cli.framework import output
from odradek.cli.framework.commands import group
from odradek.cli.framework.options import confirm, flag, option, repeatable, state_option, yes_option
from odradek.cli.framework.parameter_types import DURATION_MS, OFFSET, TIME_MS, TOPIC_NAME, NumberType
from odradek.conventions.failures import Failure
from odradek.conventions.figures import INT64_MAX, age_text, count_text
from odradek.security.authorizer import Operation

if TYPE_CHECKING:
    from odradek.admin.cluster import Cluster

STATES = ("Empty", "PreparingRebalance", "CompletingRebalance", "Rebalancing", "Stable")
UNKNOWN = "-"
PLACE_AND_OFFSETS = "topic partition committed_offset end_offset lag"
EXACTLY_ONE = "give one of --to-earliest, --to-latest, --to-time, --by-duration, --to-offset, --shift, --from-file"


@group(
    ("members, assignment and lag", "odradek group describe billing"),
    ("read everything again (a dry run; --execute applies it)", "odradek group reset billing --to-earliest"),
    name="group",
)
def consumer_group() -> None:
    """List, describe, reset and delete consumer groups."""


@consumer_group.command(
    ("every group", "odradek group list"), ("groups without members", "odradek group list --state Empty"), name="list"
)
@state_option("groups", STATES)
@cluster_options
def list_groups(states: tuple[str, ...], cluster: Cluster, as_json: bool) -> None:
    """List the groups of the cluster."""
    found, missing = groups.list_groups(BrokerRequests(cluster, groups.LIST_TIMEOUT_S))
    chosen = [each for each in found if not states or each.state in states]
    nothing = "no groups" + (" in this state" if states else "; a consumer with a group.id creates one")
    nothing = nothing if chosen or as_json else nothing_visible(cluster, "groups", nothing, Operation.DESCRIBE)
    objects = [{"group": name, "state": state, "type": kind} for name, state, kind in chosen]
    output.print_list(objects, ["GROUP", "STATE", "TYPE"], otherwise=nothing, as_json=as_json)
    output.note_missing(missing, "groups")


@consumer_group.command(
    ("state, members, assignment, lag", "odradek group describe billing"),
    ("the total lag, for a script", "odradek group describe billing --format json | jq .lag"),
)
@groups_argument
@cluster_options
def describe(names: tuple[str, ...], cluster: Cluster, as_json: bool) -> None:
    """Show state, members, assignment and lag of groups.

    Lag is the number of records that the group has not read; time lag is the age of the first of them.
    """
    found = (read_all(cluster, name) for name in dict.fromkeys(names))
    output.print_each(found, lambda each: as_object(*each), lambda each: print_group(*each), as_json=as_json)


def read_all(cluster: Cluster, name: str) -> tuple[groups.GroupState, list[groups.PartitionLag]]:
    state = groups.read_group(cluster, name)
    lags = groups.read_lags(cluster, state)
    add_time_lags(cluster, lags)
    return state, lags


def total_lag(lags: Sequence[groups.PartitionLag]) -> int | None:
    """None if that of a partition is not known."""
    return None if any(each.failure for each in lags) else sum(each.lag or 0 for each in lags)


def as_object(state: groups.GroupState, lags: Sequence[groups.PartitionLag]) -> dict[str, Any]:
    return {
        "group": state.name,
        "state": state.state,
        "type": state.kind,
        **output.fields_of(state, "assignor coordinator"),
        "lag": total_lag(lags),
        "time_lag_ms": longest_time_lag(lags),
        "members": [
            {
                **output.fields_of(member, "member_id client_id host instance_id"),
                "assignment": [{"topic": topic, "partition": partition} for topic, partition in member.assignment],
            }
            for member in state.members
        ],
        "partitions": [
            {
                **output.fields_of(each, "topic partition committed_offset end_offset lag time_lag_ms"),
                "member_id": None if each.member is None else each.member.member_id,
            }
            for each in lags
        ],
    }


def print_group(state: groups.GroupState, lags: Sequence[groups.PartitionLag]) -> None:
    names = member_names(state.members)
    print_heading(state, lags)
    if lags:
        output.say()
        print_lags(lags, names)
    if state.members:
        output.say()
        print_members(state.members, names)


def print_heading(state: groups.GroupState, lags: Sequence[groups.PartitionLag]) -> None:
    facts = [state.state, state.kind, count_text(len(state.members), "member") if state.members else "no members"]
    facts += [f"assignor {state.assignor}"] if state.assignor else []
    output.say(f"{output.strong(state.name)}  {' · '.join(facts)}")
    oldest_ms = longest_time_lag(lags)
    total = total_lag(lags)
    behind = ["lag unknown" if total is None else f"lag {count_text(total, 'record')}"]
    behind += [f"{age_text(oldest_ms)} behind"] if oldest_ms else []
    if not any(each.committed_offset is not None for each in lags):
        behind = ["nothing is committed"]
    output.say(" · ".join([*behind, output.faint(f"coordinator {state.coordinator}")]))


def print_lags(lags: Sequence[groups.PartitionLag], names: dict[str, str]) -> None:
    rows = [
        [
            *(UNKNOWN if known is None else known for known in output.values_of(each, PLACE_AND_OFFSETS)),
            UNKNOWN if each.time_lag_ms is None else age_text(each.time_lag_ms),
            *([UNKNOWN if each.member is None else names[each.member.member_id]] if names else []),
        ]
        for each in lags
    ]
    titles = ["TOPIC", "PARTITION", "COMMITTED", "END", "LAG", "TIME LAG"]
    output.print_columns([*titles, "MEMBER"] if names else titles, rows)
    for each in lags:
        if each.failure:
            output.say(output.faint(f"{each.topic}-{each.partition}: end not known: {each.failure}"))
    uncommitted = sum(each.committed_offset is None for each in lags)
    if 0 < uncommitted < len(lags):
        partitions = count_text(uncommitted, "partition")
        output.say(output.faint(f"{partitions} without a committed offset not counted in the lag"))


def print_members(members: Sequence[groups.GroupMember], names: dict[str, str]) -> None:
    columns = 4 if any(member.instance_id for member in members) else 3
    rows = [(names[each.member_id], each.host, len(each.assignment), each.instance_id or UNKNOWN) for each in members]
    titles = ["MEMBER", "HOST", "PARTITIONS", "INSTANCE"]
    output.print_columns(titles[:columns], [row[:columns] for row in rows])


def member_names(members: Sequence[groups.GroupMember]) -> dict[str, str]:
    """A short name for each member id: its client id, numbered if several members share it."""
    clients = Counter(member.client_id for member in members)
    numbers: Counter[str] = Counter()
    names = {}
    for member in members:
        name = member.client_id or "(no client id)"
        if clients[member.client_id] > 1:
            numbers[name] += 1
            name = f"{name} #{numbers[name]}"
        names[member.member_id] = name
    return names


@consumer_group.command(
    ("show what would change", "odradek group reset billing --to-earliest"),
    ("apply it", "odradek group reset billing --to-earliest --execute"),
    ("some partitions of a topic", "odradek group reset billing --topic pump:0,2 --to-time -1h --execute"),
    ("skip ten records everywhere", "odradek group reset billing --shift 10 --execute"),
    ("from lines of topic,partition,offset", "odradek group reset billing --from-file offsets.csv --execute"),
)
@group_argument
@repeatable(
    "--topic topics", "TOPIC[:P,P…]", TOPIC_NAME,
    "Only this topic, or these of its partitions. Default: all with a committed offset.",
)  # fmt: skip
@flag("--to-earliest", "To the earliest record.")
@flag("--to-latest", "To the end, so that only new records are read.")
@option("--to-time", "TIME", TIME_MS, "To the first record written at or after a time.")
@option("--by-duration", "DURATION", DURATION_MS, "To the first record written since this long ago, such as 1h.")
@option("--to-offset", "OFFSET", OFFSET, "To this offset in every partition.")
@option("--shift", "N", NumberType(-INT64_MAX, INT64_MAX), "Forward by N records, or back when N is negative.")
@option(
    "--from-file", "FILE", click.File("r", encoding="utf-8", errors="replace"),
    "To the offsets in a file with topic,partition,offset on each line.",
)  # fmt: skip
@flag("--execute", "Apply the change. Without this option it is only shown.")
@cluster_options
def reset(
    *, name: str, topics: tuple[str, ...], from_file: IO[str] | None, execute: bool, cluster: Cluster, as_json: bool,
    **ways: Any,
) -> None:  # fmt: skip
    """Move the committed offsets of a group. The group must have no active members."""
    given = [way for way, value in {**ways, "from_file": from_file}.items() if value is not None and value is not False]
    if len(given) != 1:
        raise click.UsageError(EXACTLY_ONE)
    if from_file is not None and topics:
        raise click.UsageError("--from-file and --topic exclude each other: the file names its topics")
    before = resets.committed_offsets(cluster, name, is_new_allowed=bool(topics) or from_file is not None)
    wanted = resets.read_file(from_file) if from_file is not None else {}
    keys = sorted(wanted) if from_file is not None else resets.choose_partitions(cluster, topics, before)
    if not keys:
        missing = f"group {name} has no committed offsets; name a topic with --topic"
        raise Failure(missing if from_file is None else "the file contains no offsets")
    goal = resets.Goal("offsets", offsets=wanted) if from_file is not None else goal_of(given[0], ways[given[0]])
    moves = resets.plan_moves(cluster, before, keys, goal)
    if as_json and execute:
        resets.alter(cluster, name, moves)  # first, because the rows say that it was done
    show(name, moves, execute, as_json)
    has_changes = any(each.change or each.before is None for each in moves)
    if has_changes and not execute:
        output.note("nothing was changed; add --execute to apply it")
    elif has_changes and not as_json:
        resets.alter(cluster, name, moves)
        output.say(f"group {name}: {count_text(len(moves), 'offset')} set")


def goal_of(way: str, value: int) -> resets.Goal:
    """The goal of an option and its value."""
    if way == "by_duration":
        return resets.Goal("time", int(time.time() * 1000) - value)
    return resets.Goal(way.removeprefix("to_"), int(value))


def show(name: str, moves: Sequence[resets.Move], is_done: bool, as_json: bool) -> None:
    fields = [{"group": name, **output.fields_of(each, "topic partition before after")} for each in moves]
    titles, rows = ["TOPIC", "PARTITION", "BEFORE", "AFTER", "CHANGE"], [as_row(each) for each in moves]
    output.print_list([{**each, "executed": is_done} for each in fields], titles, rows, otherwise="", as_json=as_json)
    if not as_json:
        output.say(resets.consequence(moves))
    for clipping in filter(None, (each.clipping for each in moves)):
        output.note(clipping)


def as_row(move: resets.Move) -> tuple[object, ...]:
    if move.before is None:
        return move.topic, move.partition, "-", move.after, "new"
    return move.topic, move.partition, move.before, move.after, f"{move.change:+}" if move.change else "0"


@consumer_group.command(
    ("after a question", "odradek group delete billing"),
    ("several, without a question", "odradek group delete billing audit --yes"),
)
@groups_argument
@yes_option
@cluster_options
def delete(names: tuple[str, ...], yes: bool, cluster: Cluster, as_json: bool) -> None:
    """Delete groups and their committed offsets. A group with members is not deleted."""
    unique = list(dict.fromkeys(names))
    whose = "its" if len(unique) == 1 else "their"
    confirm(f"Delete {', '.join(unique)} and {whose} committed offsets?", yes)
    failures = []
    for name in unique:
        try:
            groups.delete_group(cluster.requests, name)
        except Failure as failure:
            failures.append(groups.with_similar_names(cluster, failure))
            continue
        output.print_result({"group": name, "deleted": True}, f"deleted group {name}", as_json=as_json)
    output.raise_all(failures)
