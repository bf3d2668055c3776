"""Flushes of one log: shared by all callers, one at a time, none after the log is retired."""

import asyncio
import errno

import pytest

from odradek.log.partition_log import PartitionLog
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from odradek.protocol.messages.produce import ProduceResponse
from odradek.replica.flushing import LogFlusher, LogRetired, LogTruncated
from tests.handlers.brokers import SimulatedBroker, SimulatedPending
from tests.handlers.requests import (
    BY_NAME,
    base_offsets,
    batch,
    create_topic,
    end_of_epoch,
    fetch,
    list_offset,
    produce,
    produce_request,
)
from tests.replica.held_workers import HeldWorkers


class CountingLog:
    """As much of a log as a flusher needs."""

    def __init__(self) -> None:
        self.end_offset = 0
        self.log_end_offset = 1 << 40
        self.recovery_point_offset = 0
        self.flushes = 0
        self.problem: OSError | None = None
        self.has_failed = False
        self.reported: list[OSError] = []

    def flush(self) -> None:
        self.flushes += 1
        if self.problem is not None:
            raise self.problem
        self.recovery_point_offset = self.end_offset


class SlowWorkers:
    """Each piece of work ends when the test lets it."""

    def __init__(self) -> None:
        self.gates: list[asyncio.Event] = []

    async def run(self, function: object, *args: object) -> None:
        gate = asyncio.Event()
        self.gates.append(gate)
        await gate.wait()
        function(*args)  # type: ignore[operator]  # the log's flush

    def close(self) -> None: ...


def flusher() -> tuple[CountingLog, SlowWorkers, LogFlusher]:
    log, workers = CountingLog(), SlowWorkers()
    reported = log.reported.append
    return log, workers, LogFlusher(log, workers, reported)  # type: ignore[arg-type]  # all that it uses of a log


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_all_who_ask_meanwhile_share_the_next_flush() -> None:
    log, workers, flush = flusher()
    log.end_offset = 1
    first = asyncio.ensure_future(flush.flush_to(1))
    await settle()
    later = [asyncio.ensure_future(flush.flush_to(end)) for end in range(2, 12)]
    log.end_offset = 1  # what the running flush saw
    await settle()
    assert len(workers.gates) == 1, "one at a time"
    workers.gates[0].set()
    await first
    log.end_offset = 11
    await settle()
    assert len(workers.gates) == 2
    workers.gates[1].set()
    await asyncio.gather(*later)
    assert log.flushes == 2


@pytest.mark.parametrize(("number", "has_failed"), [(errno.EIO, False), (errno.ENOSPC, True)])
async def test_a_failure_of_the_disk_is_reported(number: int, has_failed: bool) -> None:
    log, workers, flush = flusher()
    log.end_offset, log.problem, log.has_failed = 1, OSError(number, "gone"), has_failed
    waiting = asyncio.ensure_future(flush.flush_to(1))
    await settle()
    workers.gates[0].set()
    with pytest.raises(OSError, match="gone"):
        await waiting
    assert log.reported == [log.problem]


async def test_records_that_were_truncated_are_not_waited_for() -> None:
    log, workers, flush = flusher()
    log.end_offset = log.log_end_offset = 5
    waiting = asyncio.ensure_future(flush.flush_to(5))
    await settle()
    log.end_offset = log.log_end_offset = 3
    workers.gates[0].set()
    await settle()
    assert len(workers.gates) == 1, "another flush would not help"
    with pytest.raises(LogTruncated):
        await waiting


async def test_what_is_on_the_disk_already_needs_no_flush() -> None:
    log, workers, flush = flusher()
    log.recovery_point_offset = 5
    await flush.flush_to(5)
    assert not workers.gates


async def test_a_failure_reaches_everybody_who_waited_and_the_next_may_succeed() -> None:
    log, workers, flush = flusher()
    log.end_offset, log.problem = 1, OSError(errno.ENOSPC, "no room for a file beside")
    waiting = [asyncio.ensure_future(flush.flush_to(1)) for _ in range(3)]
    await settle()
    workers.gates[0].set()
    outcomes = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [OSError] * 3
    assert not log.reported, "a full disk is not a broken one"
    log.problem = None
    again = asyncio.ensure_future(flush.flush_to(1))
    await settle()
    workers.gates[1].set()
    await again


async def test_a_client_that_goes_does_not_stop_the_flush() -> None:
    log, workers, flush = flusher()
    log.end_offset = 1
    gone, stays = (asyncio.ensure_future(flush.flush_to(1)) for _ in range(2))
    await settle()
    gone.cancel()
    await settle()
    workers.gates[0].set()
    await stays
    assert log.flushes == 1


@pytest.mark.timeout(10)  # what this guards against starves the event loop
async def test_who_asks_between_the_end_of_a_flush_and_its_callback_gets_the_next_one() -> None:
    log, workers, flush = flusher()
    log.end_offset = 1
    late: list[asyncio.Future[None]] = []

    def flush_log() -> None:
        CountingLog.flush(log)
        if not late:
            log.end_offset = 2
            late.append(asyncio.ensure_future(flush.flush_to(2)))  # runs before the callbacks of this flush

    log.flush = flush_log  # type: ignore[method-assign]  # an append during the flush
    first = asyncio.ensure_future(flush.flush_to(1))
    await settle()
    workers.gates[0].set()
    await first
    await settle()
    workers.gates[1].set()
    await late[0]
    assert log.flushes == 2


async def test_a_retired_log_is_not_flushed_any_more() -> None:
    log, workers, flush = flusher()
    log.end_offset = 1
    running = asyncio.ensure_future(flush.flush_to(1))
    late = asyncio.ensure_future(flush.flush_to(2))
    await settle()
    retiring = asyncio.ensure_future(flush.retire())
    await settle()
    assert not retiring.done(), "files must not be closed during a flush"
    workers.gates[0].set()
    await running
    await retiring
    with pytest.raises(LogRetired):
        await late
    assert log.flushes == 1


async def test_a_flush_of_a_replaced_log_does_not_end_waits() -> None:
    log, workers, _ = flusher()
    ended: list[BaseException | None] = []
    flush = LogFlusher(log, workers, log.reported.append, ended.append)  # type: ignore[arg-type]  # as above
    flush.begin()
    await settle()
    flush.disconnect()
    workers.gates[0].set()
    await settle()
    assert (log.flushes, ended) == (1, [])


# --- with a whole broker


def delete(broker: SimulatedBroker, name: str) -> SimulatedPending[DeleteTopicsResponse]:
    return broker.begin(DeleteTopicsRequest(topic_names=[name]), DeleteTopicsResponse, 4)


def test_acknowledgements_wait_for_the_disk_and_come_together(
    broker: SimulatedBroker, workers: HeldWorkers, name: str
) -> None:
    create_topic(broker, name, flush_messages="1")
    workers.held.add("flush")
    request = produce_request([(name, 0, batch())])
    waiting = [broker.begin(request, ProduceResponse, BY_NAME) for _ in range(3)]
    assert workers.waiting == ["flush"]
    assert list_offset(broker, name, -1).offset == 0, "a record is not readable before it is durable"
    assert fetch(broker, name).records == b""
    workers.release()
    answers = [each.result().responses[0].partition_responses[0] for each in waiting]
    assert [(each.error_code, each.base_offset) for each in answers] == [(0, 0), (0, 1), (0, 2)]
    assert base_offsets(fetch(broker, name).records) == [0, 1, 2]


def test_produce_requests_that_wait_for_a_flush_are_refused_when_their_topic_is_deleted(
    broker: SimulatedBroker, workers: HeldWorkers, name: str
) -> None:
    """The first flush is running; what came after it would need another, which must not happen."""
    create_topic(broker, name, flush_messages="1")
    workers.held.add("flush")
    request = produce_request([(name, 0, batch())])
    first = broker.begin(request, ProduceResponse, BY_NAME)
    partition = broker.partition(name)
    partition.flusher._log = FrozenEnd(partition.log)  # type: ignore[assignment]  # the flush sees only what was there
    second = broker.begin(request, ProduceResponse, BY_NAME)
    deleting = delete(broker, name)
    assert deleting.result().responses[0].error_code == ErrorCode.NONE
    assert f"{name}-0" in broker.simulation.disk.list_directory("/data"), "the files stay until the flush is over"
    assert produce(broker, name).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    workers.held.clear()
    workers.release()
    broker.run(broker.services.partitions.removals.settle())
    assert f"{name}-0" not in broker.simulation.disk.list_directory("/data")
    codes = [each.result().responses[0].partition_responses[0].error_code for each in (first, second)]
    assert codes == [ErrorCode.NOT_LEADER_OR_FOLLOWER] * 2, "the partition was removed before they were committed"


class FrozenEnd:
    """A log whose next flush covers only what it holds now."""

    def __init__(self, log: PartitionLog) -> None:
        self._log = log
        self._end_offset = log.log_end_offset

    @property
    def recovery_point_offset(self) -> int:
        return min(self._log.recovery_point_offset, self._end_offset)

    def __getattr__(self, name: str) -> object:
        return getattr(self._log, name)


def test_a_late_flush_of_a_deleted_topic_does_not_write_into_its_successor(
    broker: SimulatedBroker, workers: HeldWorkers, name: str
) -> None:
    create_topic(broker, name)
    produce(broker, name)
    for _ in range(4):
        broker.restart()
        produce(broker, name)
    old = broker.partition(name)
    broker.call(DeleteTopicsRequest(topic_names=[name]), DeleteTopicsResponse, 4)
    create_topic(broker, name)
    with pytest.raises(LogRetired):
        broker.run(old.flusher.flush())
    broker.restart()
    assert end_of_epoch(broker, name, 1).leader_epoch == 1, "the new topic's epochs are its own"
