"""The committed offsets of groups, with few requests (OffsetFetch).

librdkafka compares each partition of an answer with all others: a group with 100,000 of them occupies the thread of its
admin client for more than 20 s, in which no other request is answered.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from odradek.admin.broker_requests import KnownBroker, check
from odradek.admin.request_parts import in_parts
from odradek.admin.transactions import retry_while_loading
from odradek.conventions.failures import Failure
from odradek.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from odradek.admin.broker_requests import BrokerRequests
    from odradek.admin.partition_offsets import Key

GROUP_COORDINATOR = 0
GROUPS_PER_REQUEST = 10  # so that the answer for large groups is not too large


def read_committed_offsets(requests: BrokerRequests, group: str) -> dict[Key, int]:
    """Those of one group. Failure if its coordinator refuses, or does not answer."""
    answer = retry_while_loading(lambda: _ask_coordinator(requests, group), lambda answer: answer.error_code)
    check(answer.error_code, None, f"group {group}", "Describe")
    return _offsets_of(answer)


def read_committed_offsets_of(
    requests: BrokerRequests, groups: Iterable[str], partitions: Iterable[Key] | None = None
) -> dict[str, dict[Key, int]]:
    """By group, of these partitions, or of all. Groups whose coordinator refuses, or does not answer, are left out."""
    topics = None if partitions is None else _topics_of(partitions)
    coordinators: dict[KnownBroker, list[str]] = defaultdict(list)
    for some in in_parts(groups, GROUPS_PER_REQUEST):
        for each in _find_coordinators(requests, some):
            if not each.error_code:
                coordinators[_broker_of(each)].append(each.key)
    found = {}
    for coordinator, names in coordinators.items():
        for some in in_parts(names, GROUPS_PER_REQUEST):
            try:
                answers = _fetch(requests, coordinator, some, topics)
            except Failure:
                break
            found.update({each.group_id: _offsets_of(each) for each in answers if not each.error_code})
    return found


def _ask_coordinator(requests: BrokerRequests, group: str) -> OffsetFetchResponseGroup:
    (coordinator,) = _find_coordinators(requests, [group])
    if coordinator.error_code:
        return OffsetFetchResponseGroup(group_id=group, error_code=coordinator.error_code)
    (answer,) = _fetch(requests, _broker_of(coordinator), [group])
    return answer


def _find_coordinators(requests: BrokerRequests, groups: Sequence[str]) -> Sequence[Coordinator]:
    request = FindCoordinatorRequest(coordinator_keys=list(groups), key_type=GROUP_COORDINATOR)
    return requests.ask_any(request, FindCoordinatorResponse, 4).coordinators


def _broker_of(coordinator: Coordinator) -> KnownBroker:
    return KnownBroker(coordinator.node_id, coordinator.host, coordinator.port, None, is_fenced=False)


def _topics_of(partitions: Iterable[Key]) -> list[OffsetFetchRequestTopics]:
    indexes: dict[str, list[int]] = defaultdict(list)
    for topic, index in partitions:
        indexes[topic].append(index)
    return [OffsetFetchRequestTopics(name=topic, partition_indexes=wanted) for topic, wanted in indexes.items()]


def _fetch(
    requests: BrokerRequests,
    coordinator: KnownBroker,
    groups: Sequence[str],
    topics: list[OffsetFetchRequestTopics] | None = None,
) -> Sequence[OffsetFetchResponseGroup]:
    """Without topics, of all partitions of the groups."""
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=each, topics=topics) for each in groups])
    return requests.ask(coordinator, request, OffsetFetchResponse, 8).groups


def _offsets_of(group: OffsetFetchResponseGroup) -> dict[Key, int]:
    return {
        (topic.name, each.partition_index): each.committed_offset
        for topic in group.topics
        for each in topic.partitions
        if not each.error_code and each.committed_offset >= 0
    }
