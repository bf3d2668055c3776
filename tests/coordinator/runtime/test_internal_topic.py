"""An internal topic between its creation and its first shards: the metadata has it while its logs are opened."""

import asyncio
import uuid
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from odradek.coordinator.java_strings import partition_of
from odradek.coordinator.runtime.internal_topic import CREATION_TIMEOUT_S, InternalTopic
from odradek.coordinator.runtime.runtime import CoordinatorRuntime
from odradek.metadata.entities import PartitionImage, TopicImage
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from odradek.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchResponse
from tests.coordinator.groups.shard_bench import ManualClock, ManualTimers
from tests.coordinator.runtime.counter import Counters
from tests.coordinator.runtime.fake_shard_log import FakeShardLog
from tests.handlers.brokers import SimulatedBroker
from tests.replica.held_workers import HeldWorkers

KEY = "key"
GROUP, TRANSACTION = 0, 1
OWN_ID, OTHER_ID = 1, 2
PARTITION_COUNT = 4
TOPIC = "__consumer_offsets"


# While the logs are opened


@pytest.fixture
def workers() -> HeldWorkers:
    return HeldWorkers()


@pytest.fixture
def broker(workers: HeldWorkers) -> Iterator[SimulatedBroker]:
    broker = SimulatedBroker(workers)
    yield broker
    broker.close()


def search(broker: SimulatedBroker, kind: int) -> Any:
    return broker.begin(FindCoordinatorRequest(coordinator_keys=[KEY], key_type=kind), FindCoordinatorResponse)


def found(response: FindCoordinatorResponse) -> tuple[ErrorCode, int]:
    (coordinator,) = response.coordinators
    return ErrorCode(coordinator.error_code), coordinator.node_id


def use(broker: SimulatedBroker, kind: int) -> ErrorCode:
    """The error of a request that only the coordinator of the key answers."""
    if kind == GROUP:
        fetch = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=KEY, topics=[])])
        return ErrorCode(broker.call(fetch, OffsetFetchResponse).groups[0].error_code)
    request = InitProducerIdRequest(transactional_id=KEY, transaction_timeout_ms=1000)
    return ErrorCode(broker.call(request, InitProducerIdResponse).error_code)


@pytest.mark.parametrize("kind", [GROUP, TRANSACTION])
def test_a_request_is_to_be_repeated_while_the_logs_of_its_coordinator_are_opened(
    broker: SimulatedBroker, workers: HeldWorkers, kind: int
) -> None:
    assert use(broker, kind) is ErrorCode.NOT_COORDINATOR
    workers.held.add("open_logs")
    first = search(broker, kind)
    assert use(broker, kind) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    workers.release_all()
    assert found(first.result()) == (ErrorCode.NONE, broker.services.config.node_id)
    assert use(broker, kind) is ErrorCode.NONE


@pytest.mark.parametrize("kind", [GROUP, TRANSACTION])
def test_a_coordinator_is_found_when_the_logs_that_another_search_has_created_are_open(
    broker: SimulatedBroker, workers: HeldWorkers, kind: int
) -> None:
    workers.held.add("open_logs")
    first, second = search(broker, kind), search(broker, kind)
    assert not second.task.done()
    workers.release_all()
    assert found(second.result()) == found(first.result()) == (ErrorCode.NONE, broker.services.config.node_id)


@pytest.mark.parametrize("kind", [GROUP, TRANSACTION])
def test_a_search_waits_for_a_limited_time_and_a_log_that_is_not_opened_has_no_coordinator(
    broker: SimulatedBroker, workers: HeldWorkers, kind: int, caplog: pytest.LogCaptureFixture
) -> None:
    workers.held.add("open_logs")
    first, second = search(broker, kind), search(broker, kind)
    assert found(second.result()) == found(first.result()) == (ErrorCode.NONE, broker.services.config.node_id)
    assert broker.elapsed_ms() == pytest.approx(CREATION_TIMEOUT_S * 1000, rel=0.01)
    broker.step()
    assert use(broker, kind) is ErrorCode.NOT_COORDINATOR
    workers.release_all()
    broker.step(100)
    assert use(broker, kind) is ErrorCode.NONE
    caplog.clear()


# By the metadata


class Stage:
    """Partitions 0 and 2 are led by another broker, 1 and 3 by this one. None of them is in the partition table."""

    def __init__(self) -> None:
        partitions = tuple(
            PartitionImage(index, (OWN_ID, OTHER_ID), (OWN_ID, OTHER_ID), leader, leader_epoch=5, partition_epoch=5)
            for index, leader in enumerate((OTHER_ID, OWN_ID, OTHER_ID, OWN_ID))
        )
        image = TopicImage(TOPIC, uuid.UUID(int=1), partitions, is_internal=True)
        self.metadata = SimpleNamespace(
            image=SimpleNamespace(topics={TOPIC: image}), broker_config=SimpleNamespace(node_id=OWN_ID)
        )
        self.table: dict[int, SimpleNamespace] = {}
        self.runtime: CoordinatorRuntime[Counters] = CoordinatorRuntime(
            ManualClock(ManualTimers()), Counters, answer_timeout_ms=lambda: 5000
        )
        partition_table = SimpleNamespace(find=lambda _, index: self.table.get(index))
        services = cast("Any", (self.metadata, None, partition_table, None))
        self.topic = InternalTopic(TOPIC, cast("Any", None), self.runtime, *services)

    def put(self, **state: Any) -> None:
        partition = SimpleNamespace(**{"is_leader": False, "is_online": True, "leader_epoch": 5, **state})
        self.table = dict.fromkeys(range(PARTITION_COUNT), partition)

    def errors(self) -> set[object]:
        """Of the keys whose leader is this broker."""
        return {self.runtime.find(key) for key in keys_of(1, 3)} | {
            self.runtime.find_for_shared_write(key) for key in keys_of(1, 3)
        }


def keys_of(*partitions: int) -> list[str]:
    return [key for key in map(str, range(50)) if partition_of(key, PARTITION_COUNT) in partitions]


def test_keys_are_found_by_the_number_of_partitions_in_the_metadata_before_the_first_shard() -> None:
    stage = Stage()
    assert {stage.topic.leader_of(key) for key in keys_of(0, 2)} == {OTHER_ID}
    assert {stage.topic.leader_of(key) for key in keys_of(1, 3)} == {OWN_ID}
    stage = Stage()
    assert [stage.topic.partition_of(key) for key in keys_of(3)] == [3] * len(keys_of(3))


def test_keys_stay_where_their_shards_are_when_the_metadata_has_more_partitions() -> None:
    async def scenario() -> None:
        stage = Stage()
        stage.runtime.follow([FakeShardLog(1)], 2)
        assert {stage.topic.partition_of(key) for key in keys_of(0, 1, 2, 3)} == {0, 1}

    asyncio.run(scenario())


def test_the_metadata_may_have_fewer_partitions_than_the_shards_of_a_deleted_topic() -> None:
    async def scenario() -> None:
        stage = Stage()
        stage.runtime.follow([FakeShardLog(0)], 2 * PARTITION_COUNT)
        assert {stage.topic.leader_of(str(number)) for number in range(50)} == {OWN_ID, OTHER_ID, None}

    asyncio.run(scenario())


def test_only_the_keys_that_this_broker_leads_are_to_be_asked_for_again() -> None:
    stage = Stage()
    assert {stage.runtime.find(key) for key in keys_of(0, 2)} == {ErrorCode.NOT_COORDINATOR}
    assert stage.errors() == {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
    stage.metadata.image.topics.clear()
    assert stage.errors() == {ErrorCode.NOT_COORDINATOR}


@pytest.mark.parametrize(
    ("state", "is_opening"),
    [
        ({"is_leader": True}, True),  # its shard is made when all logs of the commit are open
        ({"leader_epoch": 4}, True),  # it leads when its log is truncated
        ({"leader_epoch": 4, "is_online": False}, False),  # its log has failed
        ({"leader_epoch": 5}, False),  # it led in this epoch before a restart
        ({"leader_epoch": 6}, False),  # it has resigned; the metadata is older
    ],
)
def test_a_partition_in_the_table_is_followed_soon_if_it_leads_or_its_election_is_not_applied(
    state: dict[str, Any], is_opening: bool
) -> None:
    stage = Stage()
    stage.put(**state)
    assert stage.errors() == {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if is_opening else ErrorCode.NOT_COORDINATOR}


def test_a_stopped_coordinator_is_not_available() -> None:
    stage = Stage()
    stage.runtime.stop()
    assert stage.errors() == {ErrorCode.COORDINATOR_NOT_AVAILABLE}
