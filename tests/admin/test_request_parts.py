"""What the command line sends about many topics and partitions, a broker accepts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from odradek.admin.broker_requests import DescribedCluster, KnownBroker, by_topic, in_parts
from odradek.admin.cluster_state import ClusterState, MinInSync, PartitionState
from odradek.admin.log_directories import read_sizes
from odradek.admin.partitions import Move, alter_reassignments, elect_leaders, remove_throttle, set_throttle
from odradek.admin.transactions import read_open_transactions
from odradek.conventions.failures import Failure
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from odradek.protocol.messages.elect_leaders import ElectLeadersResponse, PartitionResult, ReplicaElectionResult

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.admin.wire import Versions
    from odradek.protocol.schema import Request

TOPICS, PARTITIONS = 17_000, 3
ALL = [PartitionState(f"t-{topic}", index, 1, (1,), (1,)) for topic in range(TOPICS) for index in range(PARTITIONS)]


class Decoding:
    """Brokers that read each request as a real one does, and answer what `answers` has, or without an error."""

    def __init__(self, answers: tuple[Any, ...] = ()) -> None:
        self.partitions: list[tuple[str, int]] = []
        self.topics: list[str] = []
        self._answers = list(answers)

    def ask_any(self, request: Request, response_type: type[Any], version: Versions) -> Any:
        version = version if isinstance(version, int) else version[0]
        parts: list[Any] = [*request.encode(version)]
        encoded = b"".join(parts)
        decoded: Any = type(request).decode(memoryview(encoded), 0, version)  # MalformedMessage closes a connection
        for topic in getattr(decoded, "topics", None) or getattr(decoded, "topic_partitions", None) or []:
            name = getattr(topic, "name", None) or topic.topic
            indexes = getattr(topic, "partitions", None) or topic.partition_indexes
            self.partitions += [(name, getattr(each, "partition_index", each)) for each in indexes]
        self.topics += [each.resource_name for each in getattr(decoded, "resources", [])]
        answer = self._answers.pop(0) if self._answers else response_type()
        if isinstance(answer, Failure):
            raise answer
        return answer

    ask_controller = ask_any

    def describe(self) -> DescribedCluster:
        return DescribedCluster("id", None, {})

    def ask(self, _broker: object, *arguments: Any) -> Any:
        return self.ask_any(*arguments)


def refusing(*names: str) -> AlterPartitionReassignmentsResponse:
    code = ErrorCode.INVALID_REPLICA_ASSIGNMENT
    return AlterPartitionReassignmentsResponse(
        responses=[
            ReassignableTopicResponse(
                name=name, partitions=[ReassignablePartitionResponse(partition_index=0, error_code=code)]
            )
            for name in names
        ]
    )


ASKED: dict[str, Callable[[Any], object]] = {
    "reassign": lambda requests: alter_reassignments(requests, {(each.topic, each.index): (1, 2, 3) for each in ALL}),
    "cancel": lambda requests: alter_reassignments(requests, dict.fromkeys([(each.topic, each.index) for each in ALL])),
    "elect": lambda requests: elect_leaders(requests, ALL, is_unclean=False),
    "sizes": lambda requests: read_sizes(requests, running_cluster(), ALL),
}


def running_cluster() -> Any:
    brokers = {1: KnownBroker(1, "host", 9092, None, is_fenced=False)}
    return ClusterState(DescribedCluster("id", 1, brokers), ALL)


@pytest.mark.parametrize("name", ASKED)
def test_a_broker_accepts_requests_about_many_partitions(name: str) -> None:
    requests = Decoding()
    ASKED[name](requests)
    assert requests.partitions == [(each.topic, each.index) for each in ALL]


def test_a_broker_accepts_requests_about_the_producers_of_many_partitions() -> None:
    requests: Any = Decoding()
    broker = KnownBroker(1, "host", 9092, None, is_fenced=False)
    read_open_transactions(requests, {(each.topic, each.index): broker for each in ALL})
    assert sorted(requests.partitions) == sorted((each.topic, each.index) for each in ALL)


def test_a_broker_accepts_requests_about_the_settings_of_many_topics() -> None:
    topics = sorted({each.topic for each in ALL})
    for ask in (
        lambda requests: MinInSync(requests).of(topics),
        lambda requests: remove_throttle(requests, topics, ()),
        lambda requests: set_throttle(requests, [Move(each, (2,)) for each in ALL], 1000),
    ):
        requests: Any = Decoding()
        ask(requests)
        assert sorted(requests.topics) == topics


def test_refusals_of_all_parts_are_counted() -> None:
    requests: Any = Decoding((refusing("t-0"), refusing("t-700", "t-701")))
    with pytest.raises(Failure) as raised:
        alter_reassignments(requests, {(each.topic, each.index): (1, 2, 3) for each in ALL})
    assert [text in raised.value.message for text in ("t-0-0: ", "t-701-0: ")] == [True, True]
    assert raised.value.message.endswith(f"; the other {len(ALL) - 3} were accepted")


def test_a_part_that_is_not_answered_says_how_many_were_accepted() -> None:
    requests: Any = Decoding((refusing("t-0"), Failure("no response")))
    with pytest.raises(Failure, match=rf"^no response; 1999 of {len(ALL)} were accepted$"):
        alter_reassignments(requests, {(each.topic, each.index): (1, 2, 3) for each in ALL})
    assert len(requests.partitions) == 4_000


def test_an_election_that_is_not_answered_says_how_many_leaders_were_elected() -> None:
    codes = (ErrorCode.NONE, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, ErrorCode.NONE)
    results = [PartitionResult(partition_id=index, error_code=code) for index, code in enumerate(codes)]
    first = ElectLeadersResponse(
        replica_election_results=[ReplicaElectionResult(topic="t-0", partition_result=results)]
    )
    requests: Any = Decoding((first, Failure("no response")))
    with pytest.raises(Failure, match=rf"^no response; 2 of {len(ALL)} were elected before$"):
        elect_leaders(requests, ALL, is_unclean=False)
    with pytest.raises(Failure, match=r"^no response$"):
        elect_leaders(Decoding((Failure("no response"),)), ALL, is_unclean=False)  # type: ignore[arg-type]  # it stands for brokers


def test_parts_have_all_items_in_order() -> None:
    assert list(in_parts(range(5), 2)) == [[0, 1], [2, 3], [4]]
    assert list(in_parts([], 2)) == []
    assert by_topic([("a", 0), ("b", 1), ("a", 2)]) == {"a": [0, 2], "b": [1]}
