"""CreatePartitions: a topic grows, never shrinks, and its old partitions do not notice."""

import pytest

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from odradek.protocol.schema import Struct
from tests.handlers.brokers import AnyBroker, SimulatedBroker
from tests.handlers.requests import (
    begin_fetch,
    create_topic,
    describe_topic,
    fetch_request,
    partitions_of,
    produce,
    size_of,
    wanted,
)


def grow(
    broker: AnyBroker,
    *counts: tuple[str, int],
    assignments: list[list[int]] | None = None,
    validate_only: bool = False,
    version: int = 3,
) -> dict[str, ErrorCode]:
    placed = None
    if assignments is not None:
        placed = [CreatePartitionsAssignment(broker_ids=brokers) for brokers in assignments]
    topics = [CreatePartitionsTopic(name=name, count=count, assignments=placed) for name, count in counts]
    request = CreatePartitionsRequest(topics=topics, timeout_ms=10_000, validate_only=validate_only)
    answer = broker.call(request, CreatePartitionsResponse, version)
    return {each.name: ErrorCode(each.error_code) for each in answer.results}


@pytest.mark.parametrize("version", range(4))
def test_new_partitions_can_be_used_at_once(simulated: SimulatedBroker, name: str, version: int) -> None:
    create_topic(simulated, name)
    produce(simulated, name)
    assert grow(simulated, (name, 4), version=version) == {name: ErrorCode.NONE}
    assert [produce(simulated, name, partition=index).base_offset for index in range(4)] == [1, 0, 0, 0]
    simulated.kill()
    assert [produce(simulated, name, partition=index).base_offset for index in range(4)] == [2, 1, 1, 1]


@pytest.mark.parametrize("count", [2, 1, 0, -1])
def test_a_topic_does_not_shrink(broker: AnyBroker, name: str, count: int) -> None:
    create_topic(broker, name, 2)
    assert grow(broker, (name, count)) == {name: ErrorCode.INVALID_PARTITIONS}


def test_one_refusal_harms_no_other(broker: AnyBroker, name: str) -> None:
    create_topic(broker, name)
    reported = grow(broker, (name, 2), (f"{name}-not", 2))
    assert reported == {name: ErrorCode.NONE, f"{name}-not": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    broker.settle(lambda: len(describe_topic(broker, name).partitions) == 2)


def test_a_topic_named_twice_is_an_invalid_request(broker: AnyBroker, name: str) -> None:
    create_topic(broker, name)
    assert grow(broker, (name, 2), (name, 3)) == {name: ErrorCode.INVALID_REQUEST}


def test_topics_of_a_request_are_not_compared_with_each_other(
    simulated: SimulatedBroker, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[object] = []

    def compare(struct: Struct, other: object) -> bool:
        compared.append((struct, other))
        return False

    monkeypatch.setattr(Struct, "__eq__", compare)
    missing = grow(simulated, *((f"{name}-{number}", 2) for number in range(50)))
    assert set(missing.values()) == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert len(missing) == 50
    assert compared == []


def test_a_trial_makes_nothing(broker: AnyBroker, name: str) -> None:
    create_topic(broker, name)
    assert grow(broker, (name, 2), validate_only=True) == {name: ErrorCode.NONE}
    assert len(describe_topic(broker, name).partitions) == 1


@pytest.mark.parametrize(
    ("assignments", "error"),
    [
        ([], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([[0], [0]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([[]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([[9]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([[0, 0]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([[0]], ErrorCode.NONE),
    ],
)
def test_replicas_can_be_placed_by_hand(
    simulated: SimulatedBroker, name: str, assignments: list[list[int]], error: ErrorCode
) -> None:
    create_topic(simulated, name)
    assert grow(simulated, (name, 2), assignments=assignments) == {name: error}
    assert len(describe_topic(simulated, name).partitions) == (2 if error is ErrorCode.NONE else 1)


def test_who_waits_for_an_old_partition_goes_on_waiting(simulated: SimulatedBroker, name: str) -> None:
    create_topic(simulated, name)
    waiting = begin_fetch(simulated, fetch_request([wanted(name)], max_wait_ms=10_000))
    grow(simulated, (name, 3))
    produce(simulated, name)
    assert size_of(partitions_of(waiting.result())[0]) > 0
