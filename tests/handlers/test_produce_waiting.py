"""Produce requests with acks=all that wait for the high watermark."""

import errno

import pytest

from odradek.metadata.entities import PartitionImage
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.produce import PartitionProduceResponse, ProduceResponse
from tests.handlers.brokers import SimulatedBroker, SimulatedPending
from tests.handlers.requests import BY_NAME, base_offsets, batch, create_topic, fetch, produce, produce_request
from tests.replica.test_housekeeping import pass_time

TIMEOUT_MS = 10_000  # of `produce_request`


def set_in_sync(broker: SimulatedBroker, name: str, *in_sync: int, epoch: int) -> None:
    """This broker leads with these in-sync replicas, of two or three replicas."""
    partition = broker.partition(name)
    replicas = (0, 1) if len(in_sync) < 3 else (0, 1, 2)
    assert partition.become_leader(PartitionImage(0, replicas, in_sync, 0, epoch, epoch)) is ErrorCode.NONE


def begin(broker: SimulatedBroker, name: str, acks: int = -1) -> SimulatedPending[ProduceResponse]:
    return broker.begin(produce_request([(name, 0, batch())], acks=acks), ProduceResponse, BY_NAME)


def answer(pending: SimulatedPending[ProduceResponse]) -> PartitionProduceResponse:
    return pending.result().responses[0].partition_responses[0]


def test_acks_all_waits_for_the_high_watermark_and_acks_1_does_not(simulated: SimulatedBroker, name: str) -> None:
    create_topic(simulated, name)
    set_in_sync(simulated, name, 0, 1, epoch=1)
    first, second = begin(simulated, name), begin(simulated, name)
    assert answer(begin(simulated, name, acks=1)).base_offset == 2
    simulated.partition(name).advance_high_watermark(1)
    simulated.step()
    assert first.task.done()
    assert not second.task.done()
    simulated.partition(name).advance_high_watermark(3)
    assert [(answer(each).error_code, answer(each).base_offset) for each in (first, second)] == [(0, 0), (0, 1)]


def test_with_one_in_sync_replica_acks_all_is_answered_at_once(simulated: SimulatedBroker, name: str) -> None:
    create_topic(simulated, name)
    request = produce_request([(name, 0, batch())])
    assert isinstance(simulated.handle(request, BY_NAME), list), "no await on this path"


def test_a_request_times_out(simulated: SimulatedBroker, name: str) -> None:
    create_topic(simulated, name)
    set_in_sync(simulated, name, 0, 1, epoch=1)
    began_ms = simulated.elapsed_ms()
    refused = answer(begin(simulated, name))
    assert (refused.error_code, refused.base_offset) == (ErrorCode.REQUEST_TIMED_OUT, -1)
    assert simulated.elapsed_ms() - began_ms == pytest.approx(TIMEOUT_MS, abs=1)
    assert not simulated.partition(name).waiting_acknowledgements
    simulated.partition(name).advance_high_watermark(1)
    assert base_offsets(fetch(simulated, name).records) == [0], "the record is there nevertheless"


def test_an_in_sync_set_that_shrank_below_the_minimum_is_an_error(simulated: SimulatedBroker, name: str) -> None:
    create_topic(simulated, name, min_insync_replicas="2")
    set_in_sync(simulated, name, 0, 1, epoch=1)
    pending = begin(simulated, name)
    set_in_sync(simulated, name, 0, epoch=2)
    assert answer(pending).error_code == ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND


def test_a_client_that_goes_leaves_nothing_behind(simulated: SimulatedBroker, name: str) -> None:
    create_topic(simulated, name)
    set_in_sync(simulated, name, 0, 1, epoch=1)
    pending = begin(simulated, name)
    pending.task.cancel()
    simulated.step()
    assert not simulated.partition(name).waiting_acknowledgements


def test_a_retry_of_a_batch_that_is_not_committed_waits_too(simulated: SimulatedBroker, name: str) -> None:
    create_topic(simulated, name)
    set_in_sync(simulated, name, 0, 1, epoch=1)
    request = produce_request([(name, 0, batch(producer=(5, 0, 0)))])
    first, retry = (simulated.begin(request, ProduceResponse, BY_NAME) for _ in range(2))
    assert not retry.task.done()
    simulated.partition(name).advance_high_watermark(1)
    assert [answer(each).base_offset for each in (first, retry)] == [0, 0]


def test_a_flush_that_fails_for_lack_of_room_is_tried_again(
    simulated: SimulatedBroker, name: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    create_topic(simulated, name, flush_messages="1")
    log = simulated.partition(name).log
    flush = type(log).flush

    def refuse(_: object) -> None:
        raise OSError(errno.ENOSPC, "no room for a file beside the segment")

    with monkeypatch.context() as patch:
        patch.setattr(type(log), "flush", refuse)
        assert produce(simulated, name).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert fetch(simulated, name).records == b"", "it is not durable"
    assert type(log).flush is flush
    pass_time(simulated, 1.1)
    assert base_offsets(fetch(simulated, name).records) == [0]
    caplog.clear()
