"""Large batches that a worker converts: what happens while the worker has them."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Any, TypeVar, TypeVarTuple

import pytest

from odradek.handlers.produce_conversions import MOST_WAITING_REQUESTS
from odradek.host.worker_turns import WorkerTurns
from odradek.log.batch_conversion import EVENT_LOOP_BYTES, convert_on_worker
from odradek.protocol.batch import read_batch_header
from odradek.protocol.compression import Compression
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.produce import ProduceResponse
from odradek.protocol.records import Record, build_batch
from tests.handlers.brokers import SimulatedBroker
from tests.handlers.requests import alter_configs, create_topic, produce_request
from tests.simulation.simulated_host import InlineWorkers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from odradek.replica.partition import Partition

T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")

TOPIC_RESOURCE = 2
VERSION = 12
LARGE = build_batch([Record(0, 1_000, b"key", bytes(2 * EVENT_LOOP_BYTES))])


class HeldConversions(InlineWorkers):
    """Hold conversions back until they are released."""

    def __init__(self) -> None:
        super().__init__(random.Random(0))
        self.release = asyncio.Event()
        self.conversions = 0

    async def run(self, function: Callable[[*Arguments], T], *args: *Arguments) -> T:
        if function.__name__ != convert_on_worker.__name__:
            return await super().run(function, *args)
        self.conversions += 1
        converted = function(*args)
        await self.release.wait()
        return converted


@pytest.fixture
def workers() -> HeldConversions:
    return HeldConversions()


@pytest.fixture
def broker(workers: HeldConversions) -> Iterator[SimulatedBroker]:
    broker = SimulatedBroker(workers)
    create_topic(broker, "topic", compression_type="gzip")
    yield broker
    broker.close()


def begin(broker: SimulatedBroker, records: bytearray = LARGE, acks: int = -1) -> Any:
    return broker.begin(produce_request([("topic", 0, records)], acks=acks), ProduceResponse, VERSION)


def answer_of(response: ProduceResponse) -> tuple[int, int]:
    answer = response.responses[0].partition_responses[0]
    return answer.error_code, answer.base_offset


def codec_of_first(partition: Partition) -> Compression:
    found = partition.log.read(0, 1 << 20, 1 << 20, whole_first_batch=True)
    assert found is not None
    assert not isinstance(found, ErrorCode)
    return Compression(read_batch_header(found.read()).compression)


def test_small_batches_of_others_are_appended_first(broker: SimulatedBroker, workers: HeldConversions) -> None:
    large = begin(broker)
    assert not large.task.done()
    assert answer_of(begin(broker, build_batch([Record(0, 1_000, b"key", b"small")])).result()) == (0, 0)
    workers.release.set()
    assert answer_of(large.result()) == (0, 1)
    assert workers.conversions == 1


def test_batch_is_converted_again_if_the_configuration_has_changed(
    broker: SimulatedBroker, workers: HeldConversions
) -> None:
    large = begin(broker)
    assert alter_configs(broker, TOPIC_RESOURCE, "topic", compression_type="zstd") is ErrorCode.NONE
    workers.release.set()
    assert answer_of(large.result()) == (0, 0)
    assert workers.conversions == 2
    assert codec_of_first(broker.partition("topic")) is Compression.ZSTD


def test_batch_is_refused_if_the_leadership_has_ended(broker: SimulatedBroker, workers: HeldConversions) -> None:
    large = begin(broker)
    broker.partition("topic").retire()
    workers.release.set()
    error, _ = answer_of(large.result())
    assert error == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_batch_is_appended_after_its_connection_has_closed(broker: SimulatedBroker, workers: HeldConversions) -> None:
    large = begin(broker)
    large.task.cancel()
    broker.step()
    workers.release.set()
    broker.step()
    assert broker.partition("topic").log.log_end_offset == 1


def test_nothing_is_appended_after_conversions_were_closed(broker: SimulatedBroker, workers: HeldConversions) -> None:
    large = begin(broker)
    broker.services.produce_conversions.close()
    broker.step()
    workers.release.set()
    broker.step()
    assert broker.partition("topic").log.log_end_offset == 0
    assert large.task.done()


def test_requests_have_their_turns_in_order(broker: SimulatedBroker, workers: HeldConversions) -> None:
    waiting = [begin(broker) for _ in range(5)]
    assert workers.conversions == 1
    workers.release.set()
    assert [answer_of(each.result()) for each in waiting] == [(0, number) for number in range(5)]


def test_when_many_requests_wait_others_are_converted_on_the_event_loop(
    broker: SimulatedBroker, workers: HeldConversions, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert MOST_WAITING_REQUESTS < 1_000
    monkeypatch.setattr(WorkerTurns, "are_full", True)
    assert answer_of(begin(broker).result()) == (0, 0)
    assert workers.conversions == 0
    assert codec_of_first(broker.partition("topic")) is Compression.GZIP
