"""Large batches that a worker converts: what happens while the worker has them."""

import asyncio
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, TypeVar, TypeVarTuple

import pytest

from odradek.handlers.produce_conversions import MOST_WAITING_BYTES, MOST_WAITING_REQUESTS
from odradek.log.batch_conversion import EVENT_LOOP_BYTES, convert_on_worker
from odradek.protocol.batch import read_batch_header
from odradek.protocol.compression import Compression
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.produce import ProduceResponse
from odradek.protocol.records import Record, build_batch
from odradek.replica.partition import Partition
from tests.handlers.brokers import SimulatedBroker, joined
from tests.handlers.requests import alter_configs, create_topic, produce_request
from tests.handlers.test_client_quotas import change as change_quota
from tests.simulation.simulated_host import InlineWorkers
from tests.wire import decode_response, encode_request

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


def test_bytes_are_charged_although_the_connection_has_closed(
    broker: SimulatedBroker, workers: HeldConversions
) -> None:
    assert change_quota(broker, {"client-id": None}, {"producer_byte_rate": 1_000}) is ErrorCode.NONE
    small = build_batch([Record(0, 1_000, b"key", b"small")])
    assert begin(broker, small).result().throttle_time_ms == 0
    large = begin(broker)
    large.task.cancel()
    broker.step()
    assert begin(broker, small).result().throttle_time_ms > 0
    workers.release.set()


def test_bytes_of_a_request_that_waits_are_charged_once(broker: SimulatedBroker, workers: HeldConversions) -> None:
    assert change_quota(broker, {"client-id": None}, {"producer_byte_rate": 1_000}) is ErrorCode.NONE
    large = begin(broker)
    quotas = broker.services.quotas.clients
    (rate,) = quotas._produced.by_key.values()
    charged = rate.per_second(broker.services.quotas.now_ms())
    workers.release.set()
    response = large.result()
    assert rate.per_second(broker.services.quotas.now_ms()) == charged
    assert response.throttle_time_ms > 0


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


def test_refusal_is_explained_of_the_bytes_that_were_sent(broker: SimulatedBroker, workers: HeldConversions) -> None:
    """The memory of a frame is used again as soon as its request waits."""
    create_topic(broker, "keyed", cleanup_policy="compact")
    keyless = build_batch([Record(each, 1_000, None if each == 1 else b"key", b"") for each in range(3)])
    request = produce_request([("topic", 0, LARGE), ("keyed", 0, keyless)])
    frame = bytearray(encode_request(request, VERSION)[4:])

    async def produce() -> ProduceResponse:
        answering = broker.node.compose_serving().dispatcher.handle(memoryview(frame), broker.client)
        frame[:] = b"\xff" * len(frame)
        workers.release.set()
        assert not isinstance(answering, list)
        answer = await answering  # type: ignore[misc]  # any awaitable
        return decode_response(ProduceResponse, joined(answer), VERSION)

    converted, refused = (topic.partition_responses[0] for topic in broker.run(produce()).responses)
    assert converted.error_code == ErrorCode.NONE
    assert refused.error_code == ErrorCode.INVALID_RECORD
    assert [each.batch_index for each in refused.record_errors] == [1]


def test_requests_take_turns_with_each_of_their_batches(broker: SimulatedBroker, workers: HeldConversions) -> None:
    many = broker.begin(produce_request([("topic", 0, LARGE)] * 3), ProduceResponse, VERSION)
    one = begin(broker)
    workers.release.set()
    assert answer_of(one.result()) == (0, 1)
    answers = many.result().responses[0].partition_responses
    assert [each.base_offset for each in answers] == [0, 2, 3]


def test_batch_whose_turn_does_not_come_in_time_is_not_appended(
    broker: SimulatedBroker, workers: HeldConversions
) -> None:
    first, second = begin(broker), begin(broker)
    assert answer_of(second.result()) == (ErrorCode.REQUEST_TIMED_OUT, -1)
    assert broker.elapsed_ms() >= produce_request([]).timeout_ms
    workers.release.set()
    assert answer_of(first.result()) == (0, 0)
    broker.step()
    assert broker.partition("topic").log.log_end_offset == 1


def test_append_of_an_earlier_leader_epoch_is_not_confirmed(
    broker: SimulatedBroker, workers: HeldConversions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The batch for the first partition is appended at once, and lost while that for the second is converted."""
    create_topic(broker, "pair", partitions=2, compression_type="gzip")
    first = broker.partition("pair")
    monkeypatch.setattr(type(first), "must_flush", True)
    monkeypatch.setattr(type(first), "_advance_as_leader", lambda _: None)
    first._commits_alone = False
    small = build_batch([Record(0, 1_000, b"key", b"small")])
    waiting = broker.begin(produce_request([("pair", 0, small), ("pair", 1, LARGE)]), ProduceResponse, VERSION)
    assert first.log.log_end_offset == 1
    image = first.image
    assert image is not None
    first.resign(replace(image, leader_epoch=image.leader_epoch + 1, partition_epoch=image.partition_epoch + 1))
    first.become_leader(replace(image, leader_epoch=image.leader_epoch + 2, partition_epoch=image.partition_epoch + 2))
    first.advance_high_watermark(1)  # another record with this offset is committed
    workers.release.set()
    answers = waiting.result().responses[0].partition_responses
    assert answers[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def refusal_of(waiting: Any) -> tuple[int, int]:
    response = waiting.result()
    return response.responses[0].partition_responses[0].error_code, response.throttle_time_ms


REFUSED = (ErrorCode.NOT_ENOUGH_REPLICAS, 100)


def test_request_is_refused_while_many_requests_wait(broker: SimulatedBroker, workers: HeldConversions) -> None:
    batch = build_batch([Record(0, 1_000, b"key", bytes(EVENT_LOOP_BYTES))])
    waiting = [begin(broker, batch) for _ in range(1 + MOST_WAITING_REQUESTS)]
    assert refusal_of(begin(broker, batch)) == REFUSED
    workers.release.set()
    assert [answer_of(each.result()) for each in waiting] == [(0, number) for number in range(len(waiting))]
    assert workers.conversions == len(waiting)


def test_compressed_batches_of_many_producers_wait_to_be_decompressed(
    broker: SimulatedBroker, workers: HeldConversions
) -> None:
    create_topic(broker, "plain")
    batch = build_batch([Record(0, 1_000, None, bytes(2 * EVENT_LOOP_BYTES))], compression=Compression.ZSTD)
    request = produce_request([("plain", 0, batch)])
    waiting = [broker.begin(request, ProduceResponse, VERSION) for _ in range(3 * MOST_WAITING_REQUESTS)]
    workers.release.set()
    assert [answer_of(each.result()) for each in waiting] == [(0, number) for number in range(len(waiting))]


def test_request_is_refused_while_many_bytes_wait(broker: SimulatedBroker, workers: HeldConversions) -> None:
    alter_configs(broker, TOPIC_RESOURCE, "topic", max_message_bytes=str(2 * MOST_WAITING_BYTES))
    larger = build_batch([Record(0, 1_000, b"key", bytes(MOST_WAITING_BYTES + 1))])
    in_work, admitted = begin(broker), begin(broker, larger)
    assert refusal_of(begin(broker)) == REFUSED
    workers.release.set()
    assert [answer_of(each.result()) for each in (in_work, admitted)] == [(0, 0), (0, 1)]
    assert answer_of(begin(broker).result()) == (0, 2)


def test_batches_of_one_request_are_refused_where_too_many_bytes_would_wait(
    broker: SimulatedBroker, workers: HeldConversions
) -> None:
    large = build_batch([Record(0, 1_000, b"key", bytes(1_000_000))])
    workers.release.set()
    request = produce_request([("topic", 0, large)] * 20)
    answers = broker.call(request, ProduceResponse, VERSION).responses[0].partition_responses
    appended = sum(each.error_code == ErrorCode.NONE for each in answers)
    assert appended == MOST_WAITING_BYTES // len(large)
    assert {each.error_code for each in answers[appended:]} == {ErrorCode.NOT_ENOUGH_REPLICAS}
