"""Offsets of many partitions, with few requests (ListOffsets): the first, the next, or those of a time."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from odradek.admin.broker_requests import TOPICS_PER_REQUEST, by_topic, in_parts
from odradek.admin.cluster_state import ClusterState, PartitionState, led_partitions
from odradek.admin.errors import AnswerTimeout, LostConnection, NoAnswer, broker_failure
from odradek.conventions.failures import Failure
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages import list_offsets as listing

if TYPE_CHECKING:
    from odradek.admin.broker_requests import BrokerRequests, KnownBroker


LATEST, EARLIEST = -1, -2  # in place of a time
VERSION = 2
LEADER_TIMEOUT_S = 5.0
RETRY_PAUSE_S = 0.05
NO_LEADER = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.LEADER_NOT_AVAILABLE})
Key = tuple[str, int]  # topic, partition


class ListedOffsets(NamedTuple):
    """Offsets by partition; `failures` of the partitions that have none."""

    offsets: dict[Key, int]
    failures: dict[Key, Failure]

    def all(self) -> dict[Key, int]:
        """Failure if one of them is missing."""
        for failure in self.failures.values():
            raise failure
        return self.offsets


def list_offsets(
    requests: BrokerRequests, keys: Iterable[Key], time_ms: int, *, reads_committed: bool = False
) -> ListedOffsets:
    """Offsets of partitions of any topics. Retries for seconds while one has no leader, as in a new topic."""
    listed = ListedOffsets({}, {})
    asked: Iterable[Key] = keys
    deadline = time.monotonic() + LEADER_TIMEOUT_S
    while True:
        retried: dict[Key, Failure] = {}
        leaders, errors = _find_leaders(requests, asked)
        for leader, led in leaders.items():
            for some in in_parts(led):
                try:
                    for key, code, offset in _ask_leader(requests, leader, some, time_ms, reads_committed):
                        if code:
                            errors[key] = code
                        else:
                            listed.offsets[key] = offset
                except AnswerTimeout as failure:
                    listed.failures.update(dict.fromkeys(some, failure))
                except (NoAnswer, LostConnection) as failure:
                    retried |= dict.fromkeys(some, failure)
        for key, code in errors.items():
            failures = retried if code in NO_LEADER else listed.failures
            failures[key] = broker_failure(code, None, f"topic {key[0]}, partition {key[1]}", "Describe")
        if not retried or time.monotonic() > deadline:
            listed.failures.update(retried)
            return listed
        asked = list(retried)
        time.sleep(RETRY_PAUSE_S)


def first_at(
    requests: BrokerRequests, time_ms: int, earliest: Mapping[Key, int], latest: Mapping[Key, int]
) -> Mapping[Key, int]:
    """The first offset at or after a time, of the partitions whose bounds are given; the end where there is none."""
    if time_ms < 0:  # negative times have special meanings in the protocol, and no record has one
        return earliest
    found = list_offsets(requests, latest, time_ms).all()
    return {key: end if found[key] < 0 else found[key] for key, end in latest.items()}


def _find_leaders(requests: BrokerRequests, keys: Iterable[Key]) -> tuple[dict[KnownBroker, list[Key]], dict[Key, int]]:
    """The partitions of each leader; and the error codes of those that have none."""
    leaders: dict[KnownBroker, list[Key]] = defaultdict(list)
    errors: dict[Key, int] = {}
    for topics in in_parts(by_topic(keys).items(), TOPICS_PER_REQUEST):
        brokers, answer = requests.metadata([topic for topic, _indexes in topics])
        codes = {each.name: each.error_code for each in answer.topics}
        ids = {(each.name, part.partition_index): part.leader_id for each in answer.topics for part in each.partitions}
        for topic, indexes in topics:
            for index in indexes:
                key = topic, index
                leader = brokers.get(ids.get(key, -1))
                if leader is not None:
                    leaders[leader].append(key)
                else:
                    unknown = ErrorCode.LEADER_NOT_AVAILABLE if key in ids else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                    errors[key] = codes.get(topic) or unknown
    return leaders, errors


def read_offsets(requests: BrokerRequests, state: ClusterState, time_ms: int) -> dict[Key, int]:
    """The first or the next offset of each partition; partitions whose leader does not answer are left out."""
    return read_offsets_of(requests, state.brokers, state.partitions, time_ms)


def read_offsets_of(
    requests: BrokerRequests, brokers: Mapping[int, KnownBroker], partitions: Iterable[PartitionState], time_ms: int
) -> dict[Key, int]:
    """The same for some partitions."""
    found: dict[Key, int] = {}
    for broker, led in led_partitions(brokers, partitions):
        for some in in_parts(((each.topic, each.index) for each in led), 5_000):
            try:
                answers = list(_ask_leader(requests, broker, some, time_ms, reads_committed=False))
            except Failure:
                break
            found |= {key: offset for key, code, offset in answers if not code}
    return found


def _ask_leader(
    requests: BrokerRequests, leader: KnownBroker, keys: Sequence[Key], time_ms: int, reads_committed: bool
) -> Iterator[tuple[Key, int, int]]:
    """The error code and the offset of each partition."""
    request = offsets_request(((key, time_ms) for key in keys), reads_committed=reads_committed)
    for topic in requests.ask(leader, request, listing.ListOffsetsResponse, VERSION).topics:
        for each in topic.partitions:
            yield (topic.name, each.partition_index), each.error_code, each.offset


def offsets_request(times: Iterable[tuple[Key, int]], *, reads_committed: bool = False) -> listing.ListOffsetsRequest:
    """`times` in ms, LATEST or EARLIEST, by partition."""
    new = listing.ListOffsetsPartition
    asked = by_topic((topic, new(partition_index=index, timestamp=time_ms)) for (topic, index), time_ms in times)
    topics = [listing.ListOffsetsTopic(name=name, partitions=some) for name, some in asked.items()]
    return listing.ListOffsetsRequest(replica_id=-1, isolation_level=int(reads_committed), topics=topics)
