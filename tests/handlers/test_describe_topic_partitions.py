"""DescribeTopicPartitions: pages of bounded size, in the order of names, each going on where the last one ended."""

import pytest

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)
from tests.handlers.brokers import AnyBroker, SimulatedBroker
from tests.handlers.requests import create_topic

Page = list[tuple[str | None, list[int]]]


def ask(
    broker: AnyBroker, *names: str, limit: int = 2000, cursor: tuple[str, int] | None = None
) -> DescribeTopicPartitionsResponse:
    request = DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name=each) for each in names],
        response_partition_limit=limit,
        cursor=None if cursor is None else Cursor(topic_name=cursor[0], partition_index=cursor[1]),
    )
    return broker.call(request, DescribeTopicPartitionsResponse)


def page(answer: DescribeTopicPartitionsResponse) -> Page:
    return [(topic.name, [each.partition_index for each in topic.partitions]) for topic in answer.topics]


def next_cursor(answer: DescribeTopicPartitionsResponse) -> tuple[str, int] | None:
    cursor = answer.next_cursor
    return None if cursor is None else (cursor.topic_name, cursor.partition_index)


@pytest.fixture
def topics(broker: AnyBroker, name: str) -> list[str]:
    """Three, two and one partitions, made out of order."""
    names = [f"{name}-{letter}" for letter in "abc"]
    for each, count in ((names[2], 1), (names[0], 3), (names[1], 2)):
        create_topic(broker, each, count)
    return names


def test_topics_come_in_the_order_of_their_names(broker: AnyBroker, topics: list[str]) -> None:
    answer = ask(broker, *reversed(topics))
    assert page(answer) == [(topics[0], [0, 1, 2]), (topics[1], [0, 1]), (topics[2], [0])]
    assert answer.next_cursor is None
    partition = answer.topics[0].partitions[0]
    assert (partition.eligible_leader_replicas, partition.last_known_elr) == ([], []), "null makes Kafka's tool throw"
    assert partition.replica_nodes == partition.isr_nodes == [partition.leader_id]


@pytest.mark.parametrize(
    ("limit", "pages"),
    [
        (1, [[("a", [0])], [("a", [1])], [("a", [2])], [("b", [0])], [("b", [1])], [("c", [0])]]),
        (2, [[("a", [0, 1])], [("a", [2]), ("b", [0])], [("b", [1]), ("c", [0])]]),
        (3, [[("a", [0, 1, 2])], [("b", [0, 1]), ("c", [0])]]),
        (5, [[("a", [0, 1, 2]), ("b", [0, 1])], [("c", [0])]]),
        (6, [[("a", [0, 1, 2]), ("b", [0, 1]), ("c", [0])]]),
    ],
)
def test_pages_go_on_where_the_last_one_ended(
    broker: AnyBroker, name: str, topics: list[str], limit: int, pages: list[list[tuple[str, list[int]]]]
) -> None:
    seen: list[Page] = []
    cursor: tuple[str, int] | None = None
    for _ in range(10):
        answer = ask(broker, *topics, limit=limit, cursor=cursor)
        seen.append(page(answer))
        cursor = next_cursor(answer)
        if cursor is None:
            break
    assert seen == [[(f"{name}-{letter}", indexes) for letter, indexes in each] for each in pages]


@pytest.mark.parametrize("limit", [0, -1])
def test_a_page_has_at_least_one_partition(broker: AnyBroker, topics: list[str], limit: int) -> None:
    assert page(ask(broker, *topics, limit=limit)) == [(topics[0], [0])]


def test_the_brokers_limit_holds_too(name: str) -> None:
    broker = SimulatedBroker(max_request_partition_size_limit="2")
    create_topic(broker, name, 3)
    answer = ask(broker, name)
    assert (page(answer), next_cursor(answer)) == ([(name, [0, 1])], (name, 2))
    broker.close()


def test_no_names_means_all(simulated: SimulatedBroker) -> None:
    for each in ("b", "a"):
        create_topic(simulated, each)
    assert page(ask(simulated)) == [("a", [0]), ("b", [0])]
    assert page(ask(simulated, cursor=("aa", 0))) == [("b", [0])], "a topic may go between two pages"


def test_an_unknown_topic_is_reported_with_its_error(broker: AnyBroker, topics: list[str]) -> None:
    answer = ask(broker, topics[2], f"{topics[2]}-not")
    reported = [(topic.name, ErrorCode(topic.error_code)) for topic in answer.topics]
    assert reported == [(topics[2], ErrorCode.NONE), (f"{topics[2]}-not", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]


@pytest.mark.parametrize("illegal", ["..", "a b", "x" * 250])
def test_an_illegal_name_is_reported_with_its_error(broker: AnyBroker, illegal: str) -> None:
    assert [topic.error_code for topic in ask(broker, illegal).topics] == [ErrorCode.INVALID_TOPIC_EXCEPTION]


def test_a_topic_asked_for_twice_is_reported_once(broker: AnyBroker, topics: list[str]) -> None:
    assert page(ask(broker, topics[2], topics[2])) == [(topics[2], [0])]


def test_a_cursor_of_a_topic_that_was_not_asked_for_is_invalid(broker: AnyBroker, topics: list[str]) -> None:
    answer = ask(broker, topics[0], cursor=(topics[1], 0))
    assert [(topic.name, ErrorCode(topic.error_code)) for topic in answer.topics] == [
        (topics[0], ErrorCode.INVALID_REQUEST)
    ]
    assert answer.next_cursor is None


def test_a_cursor_before_the_first_partition_is_invalid(broker: AnyBroker, topics: list[str]) -> None:
    answer = ask(broker, topics[0], cursor=(topics[0], -1))
    assert [ErrorCode(topic.error_code) for topic in answer.topics] == [ErrorCode.INVALID_REQUEST]


def test_a_cursor_behind_the_last_partition_ends_the_topic(broker: AnyBroker, topics: list[str]) -> None:
    answer = ask(broker, *topics, cursor=(topics[1], 9))
    assert page(answer)[-1] == (topics[2], [0])
