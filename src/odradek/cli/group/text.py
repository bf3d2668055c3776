"""Output of `odradek group describe`: two lines and tables as text, one object as JSON."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from odradek.admin.time_lag import longest_time_lag
from odradek.cli.framework.output import faint, print_columns, say, strong
from odradek.conventions.figures import age_text, count_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.admin.groups import GroupMember, GroupState, PartitionLag

UNKNOWN = "-"


def total_lag(lags: Sequence[PartitionLag]) -> int | None:
    """None if that of a partition is not known."""
    return None if any(each.failure for each in lags) else sum(each.lag or 0 for each in lags)


def as_object(state: GroupState, lags: Sequence[PartitionLag]) -> dict[str, Any]:
    return {
        "group": state.name,
        "state": state.state,
        "type": state.kind,
        "assignor": state.assignor,
        "coordinator": state.coordinator,
        "lag": total_lag(lags),
        "time_lag_ms": longest_time_lag(lags),
        "members": [
            {
                "member_id": member.member_id,
                "client_id": member.client_id,
                "host": member.host,
                "instance_id": member.instance_id,
                "assignment": [{"topic": topic, "partition": partition} for topic, partition in member.assignment],
            }
            for member in state.members
        ],
        "partitions": [
            {
                "topic": each.topic,
                "partition": each.partition,
                "committed_offset": each.committed_offset,
                "end_offset": each.end_offset,
                "lag": each.lag,
                "time_lag_ms": each.time_lag_ms,
                "member_id": None if each.member is None else each.member.member_id,
            }
            for each in lags
        ],
    }


def print_group(state: GroupState, lags: Sequence[PartitionLag]) -> None:
    names = member_names(state.members)
    print_heading(state, lags)
    if lags:
        say()
        print_lags(lags, names)
    if state.members:
        say()
        print_members(state.members, names)


def print_heading(state: GroupState, lags: Sequence[PartitionLag]) -> None:
    facts = [state.state, state.kind, count_text(len(state.members), "member") if state.members else "no members"]
    facts += [f"assignor {state.assignor}"] if state.assignor else []
    say(f"{strong(state.name)}  {' · '.join(facts)}")
    oldest_ms = longest_time_lag(lags)
    total = total_lag(lags)
    behind = ["lag unknown" if total is None else f"lag {count_text(total, 'record')}"]
    behind += [f"{age_text(oldest_ms)} behind"] if oldest_ms else []
    if not any(each.committed_offset is not None for each in lags):
        behind = ["nothing is committed"]
    say(" · ".join([*behind, faint(f"coordinator {state.coordinator}")]))


def print_lags(lags: Sequence[PartitionLag], names: dict[str, str]) -> None:
    titles = ["TOPIC", "PARTITION", "COMMITTED", "END", "LAG", "TIME LAG"]
    rows = [
        [
            each.topic,
            each.partition,
            *(UNKNOWN if known is None else known for known in (each.committed_offset, each.end_offset, each.lag)),
            UNKNOWN if each.time_lag_ms is None else age_text(each.time_lag_ms),
            *([UNKNOWN if each.member is None else names[each.member.member_id]] if names else []),
        ]
        for each in lags
    ]
    print_columns([*titles, "MEMBER"] if names else titles, rows)
    for each in lags:
        if each.failure:
            say(faint(f"{each.topic}-{each.partition}: end not known: {each.failure}"))
    uncommitted = sum(each.committed_offset is None for each in lags)
    if 0 < uncommitted < len(lags):
        say(faint(f"{count_text(uncommitted, 'partition')} without a committed offset not counted in the lag"))


def print_members(members: Sequence[GroupMember], names: dict[str, str]) -> None:
    titles, rows = ["MEMBER", "HOST", "PARTITIONS"], []
    has_instances = any(member.instance_id for member in members)
    for member in members:
        instance = [member.instance_id or UNKNOWN] if has_instances else []
        rows.append([names[member.member_id], member.host, len(member.assignment), *instance])
    print_columns([*titles, "INSTANCE"] if has_instances else titles, rows)


def member_names(members: Sequence[GroupMember]) -> dict[str, str]:
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
