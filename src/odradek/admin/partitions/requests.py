"""Requests that begin and cancel reassignments and moves between log directories, and that elect leaders."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from odradek.admin.broker_requests import PARTITIONS_PER_REQUEST, BrokerRequests, KnownBroker, by_topic, in_parts
from odradek.admin.errors import check, error_text
from odradek.conventions.failures import Failure
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from odradek.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)
from odradek.protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse, TopicPartitions

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from odradek.admin.cluster_state import PartitionState
    from odradek.admin.log_directories import Copy

TIMEOUT_MS = 15_000
PREFERRED, UNCLEAN = 0, 1
ELECTION_ADVICE = {
    ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE: "the preferred leader is not running, or not in sync",
    ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE: "no replica is running that may lead; start one of its brokers",
}


class Refused(Failure):
    """The controller has refused all partitions, so that nothing has begun."""


def alter_reassignments(requests: BrokerRequests, targets: Mapping[tuple[str, int], tuple[int, ...] | None]) -> None:
    """Begin a reassignment of each partition, or cancel it where the target is None. A Failure names all refusals."""
    partitions = [
        (topic, ReassignablePartition(partition_index=index, replicas=None if replicas is None else list(replicas)))
        for (topic, index), replicas in targets.items()
    ]
    refused: list[str] = []
    accepted = 0
    for part in in_parts(partitions, PARTITIONS_PER_REQUEST):
        try:
            refused_of_part = _alter_part(requests, part)
        except Failure as failure:
            if accepted:
                raise Failure(f"{failure.message}; {accepted} of {len(targets)} were accepted") from None
            raise
        refused += refused_of_part
        accepted += len(part) - len(refused_of_part)
    if refused:
        if not accepted:
            raise Refused("; ".join(refused))
        raise Failure("; ".join(refused) + f"; the other {accepted} were accepted")


def _alter_part(requests: BrokerRequests, partitions: Iterable[tuple[str, ReassignablePartition]]) -> list[str]:
    """The refusals."""
    request = AlterPartitionReassignmentsRequest(
        timeout_ms=TIMEOUT_MS,
        topics=[ReassignableTopic(name=topic, partitions=some) for topic, some in by_topic(partitions).items()],
    )
    answer = requests.ask_controller(request, AlterPartitionReassignmentsResponse, 0)
    check(answer.error_code, answer.error_message, "reassignment", "Alter")
    return [
        error_text(each.error_code, each.error_message, f"{topic.name}-{each.partition_index}")
        for topic in answer.responses
        for each in topic.partitions
        if each.error_code
    ]


def move_replicas(requests: BrokerRequests, broker: KnownBroker, copies: Iterable[Copy], directory: str) -> None:
    """Begin to copy replicas to another log directory of their broker. The move of a replica that is in the directory
    is cancelled. A Failure names all refusals."""
    by_name = by_topic(each.key for each in copies)
    topics = [AlterReplicaLogDirTopic(name=topic, partitions=some) for topic, some in by_name.items()]
    request = AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=directory, topics=topics)])
    refused = [
        error_text(each.error_code, None, f"{topic.topic_name}-{each.partition_index}")
        for topic in requests.ask(broker, request, AlterReplicaLogDirsResponse, 2).results
        for each in topic.partitions
        if each.error_code
    ]
    if refused:
        raise Failure("; ".join(refused))


class ElectionResult(NamedTuple):
    topic: str
    partition: int
    error: ErrorCode
    reason: str


def elect_leaders(
    requests: BrokerRequests, partitions: Sequence[PartitionState], *, is_unclean: bool
) -> list[ElectionResult]:
    """The result of each partition. A Failure of a later request says how many leaders were elected before."""
    results: list[ElectionResult] = []
    for part in in_parts(((each.topic, each.index) for each in partitions), PARTITIONS_PER_REQUEST):
        try:
            results += _elect_part(requests, part, is_unclean=is_unclean)
        except Failure as failure:
            if results:
                elected = sum(each.error is ErrorCode.NONE for each in results)
                raise Failure(f"{failure.message}; {elected} of {len(partitions)} were elected before") from None
            raise
    return results


def _elect_part(
    requests: BrokerRequests, partitions: Iterable[tuple[str, int]], *, is_unclean: bool
) -> list[ElectionResult]:
    request = ElectLeadersRequest(
        election_type=UNCLEAN if is_unclean else PREFERRED,
        topic_partitions=[
            TopicPartitions(topic=topic, partitions=some) for topic, some in by_topic(partitions).items()
        ],
        timeout_ms=TIMEOUT_MS,
    )
    answer = requests.ask_controller(request, ElectLeadersResponse, 2)
    check(answer.error_code, None, "election", "Alter")
    return _election_results(answer)


def _election_results(answer: ElectLeadersResponse) -> list[ElectionResult]:
    results = []
    for topic in answer.replica_election_results:
        for each in topic.partition_result:
            error = ErrorCode(each.error_code)
            reason = ELECTION_ADVICE.get(error) or (each.error_message or "").rstrip(".")
            results.append(ElectionResult(topic.topic, each.partition_id, error, reason))
    return results
