"""Reads the states and the lag of all groups, with a few requests to each coordinator."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from odradek.admin.doctor.cluster.facts import GroupFacts
from odradek.admin.errors import check
from odradek.admin.groups import unread_records
from odradek.admin.offsets import LATEST, read_offsets_of
from odradek.admin.request_parts import in_parts
from odradek.conventions.failures import Failure
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from odradek.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchResponse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.admin.broker_requests import BrokerRequests, KnownBroker
    from odradek.admin.cluster_state import ClusterState
    from odradek.admin.doctor.reading import Reader
    from odradek.admin.offsets import Key

GROUPS_PER_REQUEST = 200
NO_COORDINATOR = frozenset({ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS})


def read_groups(requests: BrokerRequests, state: ClusterState, reader: Reader) -> list[GroupFacts]:
    """The groups of the brokers that answer."""
    states: dict[str, str] = {}
    committed: dict[str, dict[Key, int]] = {}
    refusals: Counter[int] = Counter()
    for broker in state.brokers.values():
        if broker.is_fenced:
            continue
        reader.check_time()
        try:
            answer = requests.ask(broker, ListGroupsRequest(), ListGroupsResponse, 4)
        except Failure:
            continue  # a broker that does not answer has a finding of its own
        if answer.error_code not in NO_COORDINATOR:
            check(answer.error_code, None, "groups")
        listed = {each.group_id: each.group_state for each in answer.groups}
        states |= listed
        committed |= _read_committed(requests, broker, list(listed), reader, refusals)
    reader.leave_out("groups", refusals, "group", "offsets of {}")
    wanted = {key for offsets in committed.values() for key in offsets}
    partitions = [each for each in state.partitions if (each.topic, each.index) in wanted]
    ends = read_offsets_of(requests, state.brokers, partitions, LATEST)
    existing = {(each.topic, each.index) for each in partitions}
    groups = [
        GroupFacts(name, group_state, unread_records(committed.get(name, {}), ends, existing))
        for name, group_state in sorted(states.items())
    ]
    unknown = sum(1 for each in groups if each.lag is None)
    if unknown:
        reader.reasons.setdefault("groups", f"lag of {unknown:,} groups: the leader of a partition does not answer")
    return groups


def _read_committed(
    requests: BrokerRequests, broker: KnownBroker, names: Sequence[str], reader: Reader, refusals: Counter[int]
) -> dict[str, dict[Key, int]]:
    found: dict[str, dict[Key, int]] = {}
    for some in in_parts(names, GROUPS_PER_REQUEST):
        reader.check_time()
        groups = [OffsetFetchRequestGroup(group_id=name, topics=None) for name in some]
        answer = requests.ask(broker, OffsetFetchRequest(groups=groups), OffsetFetchResponse, 8)
        for group in answer.groups:
            errors = {group.error_code, *(each.error_code for topic in group.topics for each in topic.partitions)}
            refusals.update(error for error in errors if error and error != ErrorCode.GROUP_ID_NOT_FOUND)
            found[group.group_id] = {
                (topic.name, each.partition_index): each.committed_offset
                for topic in group.topics
                for each in topic.partitions
                if each.committed_offset >= 0 and not each.error_code
            }
    return found


def compare(first: Sequence[GroupFacts], second: Sequence[GroupFacts], interval_s: float) -> list[GroupFacts]:
    """The groups of the first sample, with the lag, its growth and the state of the second one."""
    later = {each.name: each for each in second}
    return [
        replace(
            each,
            lag=later[each.name].lag,
            growth=_growth(each.lag, later[each.name].lag),
            interval_s=interval_s,
            later_state=later[each.name].state,
        )
        if each.name in later
        else each
        for each in first
    ]


def _growth(first: int | None, second: int | None) -> int:
    return 0 if first is None or second is None else second - first
