"""A broker compacts by itself: what asks for it, the dirtiest first, and never in the way of a deletion."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any, cast

import pytest

from odradek.host.background import BackgroundContext
from odradek.log.aborted_transactions import collect_aborted
from odradek.log.checkpoints import decode_checkpoint
from odradek.log.compaction.compactor import CompactionJob, compact
from odradek.protocol.batch import assign_offset
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from odradek.protocol.records import Record, build_batch
from odradek.replica.compaction import Compaction
from odradek.replica.partition import Partition
from tests.handlers.brokers import SimulatedBroker
from tests.handlers.requests import alter_configs, create_topic, delete_topic, fetch, produce
from tests.log.batches import NOW_MS
from tests.log.compaction.compacted_logs import headers_of, records_of
from tests.replica.held_workers import HeldWorkers
from tests.replica.test_housekeeping import pass_time
from tests.replica.test_sparse_table import ELSEWHERE, HERE, change_partition
from tests.replica.transactions import abort, commit
from tests.replica.transactions import put as put_in_transaction
from tests.simulation.simulated_host import InlineBackground

CHECKPOINT = "/data/cleaner-offset-checkpoint"
BACKOFF_SECONDS = 17
# Every batch gets an index entry, and three fill an index.
SMALL_SEGMENTS: dict[str, Any] = {"segment_index_bytes": "24", "index_interval_bytes": "0"}


@pytest.fixture
def broker() -> Iterator[SimulatedBroker]:
    simulated = SimulatedBroker()
    yield simulated
    simulated.close()


def put(broker: SimulatedBroker, topic: str, key: bytes, value: bytes | None, timestamp: int = NOW_MS) -> None:
    assert produce(broker, topic, build_batch([Record(0, timestamp, key, value)])).error_code == 0


def fill(broker: SimulatedBroker, topic: str, count: int = 20, **configs: Any) -> None:
    create_topic(broker, topic, cleanup_policy="compact", **SMALL_SEGMENTS, **configs)
    for number in range(count):
        put(broker, topic, b"%d" % (number % 2), b"%d" % number)


def offsets(broker: SimulatedBroker, topic: str) -> list[int]:
    return [record.offset for record in records_of(broker.partition(topic).log)]


def compaction_of(broker: SimulatedBroker) -> Compaction:
    found: Any = next(each for each in broker.node._housekeeping._periodic if each.name == "compaction")
    return cast("Compaction", found)


def checkpoint(broker: SimulatedBroker) -> dict[tuple[str, int], int]:
    return decode_checkpoint(broker.simulation.disk.read_file(CHECKPOINT))


def test_a_compacted_topic_is_compacted_and_its_readers_see_the_latest(broker: SimulatedBroker, name: str) -> None:
    fill(broker, name)
    assert offsets(broker, name) == [*range(20)]
    pass_time(broker, BACKOFF_SECONDS)
    active = broker.partition(name).log.segments[-1].base_offset
    assert offsets(broker, name) == [active - 2, active - 1, *range(active, 20)]
    assert checkpoint(broker) == {(name, 0): active}
    read = fetch(broker, name, 0)
    assert read.records is not None
    assert read.high_watermark == 20
    broker.restart()
    assert offsets(broker, name) == [active - 2, active - 1, *range(active, 20)]
    assert not [name for name in broker.simulation.disk.list_directory(f"/data/{name}-0") if name.endswith("deleted")]


def test_other_topics_are_left_alone(broker: SimulatedBroker, name: str) -> None:
    create_topic(broker, name, **SMALL_SEGMENTS)
    for _ in range(10):
        put(broker, name, b"key", b"value")
    pass_time(broker, BACKOFF_SECONDS)
    assert offsets(broker, name) == [*range(10)]


def test_a_cleaner_that_is_switched_off_does_nothing(name: str) -> None:
    broker = SimulatedBroker(log_cleaner_enable="false")
    fill(broker, name)
    pass_time(broker, BACKOFF_SECONDS)
    assert offsets(broker, name) == [*range(20)]
    broker.close()


def test_the_backoff_can_change_while_the_broker_runs(broker: SimulatedBroker, name: str) -> None:
    alter_configs(broker, 4, "", log_cleaner_backoff_ms="1000")
    fill(broker, name)
    pass_time(broker, 4)
    assert len(offsets(broker, name)) < 20


def test_what_was_compacted_is_not_compacted_again_after_a_restart(broker: SimulatedBroker, name: str) -> None:
    fill(broker, name)
    pass_time(broker, BACKOFF_SECONDS)
    cleaned = broker.partition(name).log.segments[0]
    pass_time(broker, 3 * BACKOFF_SECONDS)
    assert broker.partition(name).log.segments[0] is cleaned
    broker.restart()
    cleaned = broker.partition(name).log.segments[0]
    pass_time(broker, 3 * BACKOFF_SECONDS)
    assert broker.partition(name).log.segments[0] is cleaned


def test_a_topic_can_be_deleted_and_recreated_while_it_is_compacted(broker: SimulatedBroker, name: str) -> None:
    for _ in range(5):
        fill(broker, name, segment_ms="100000")
        pass_time(broker, 3)  # only what is on the disk is compacted
        begun = broker.simulation.loop.time()
        compaction = compaction_of(broker)
        broker.run(compaction.run(NOW_MS))
        broker.step(broker.simulation.chance.randrange(12))
        delete_topic(broker, name)
        assert broker.simulation.loop.time() == begun
        fill(broker, name, count=3)
        pass_time(broker, BACKOFF_SECONDS)
        assert (name, 0) not in checkpoint(broker) or checkpoint(broker)[name, 0] <= 3
        names = broker.simulation.disk.list_directory(f"/data/{name}-0")
        assert not [each for each in names if each.endswith((".cleaned", ".swap"))]
        assert broker.partition(name).log.log_end_offset == 3
        delete_topic(broker, name)
        broker.run(broker.services.partitions.removals.settle())
        assert (name, 0) not in checkpoint(broker)


def test_damage_is_reported_once_and_the_others_are_compacted(
    broker: SimulatedBroker, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    fill(broker, name, count=40)
    fill(broker, "other")
    path = f"/data/{name}-0/{0:020d}.log"
    broker.simulation.disk.open(path).write_at(b"rot", 65)
    pass_time(broker, 3 * BACKOFF_SECONDS)
    assert len(broker.partition(name).log.segments) > 2
    assert len(offsets(broker, "other")) < 20
    reported = [record for record in caplog.records if "damaged" in record.getMessage()]
    assert len(reported) == 1
    assert path in str(reported[0].__dict__)
    caplog.clear()


def test_an_unexpected_failure_leaves_no_files_and_the_others_are_compacted(
    broker: SimulatedBroker, name: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail_after_staging(context: BackgroundContext, job: CompactionJob) -> Iterator[Any]:
        results = compact(context, job)
        if job.directory == f"/data/{name}-0":
            next(results)
            raise RuntimeError("out of order")
        yield from results

    monkeypatch.setattr("odradek.replica.compaction.compact", fail_after_staging)
    fill(broker, name, count=40)
    fill(broker, "other")
    pass_time(broker, BACKOFF_SECONDS)
    assert offsets(broker, name) == [*range(40)]
    names = broker.simulation.disk.list_directory(f"/data/{name}-0")
    assert not [each for each in names if each.endswith((".cleaned", ".swap"))]
    assert len(offsets(broker, "other")) < 20
    assert [each.exc_info is not None for each in caplog.records if name in str(each.__dict__)] == [True]
    caplog.clear()


def test_a_full_disk_is_tried_again(broker: SimulatedBroker, name: str, caplog: pytest.LogCaptureFixture) -> None:
    fill(broker, name)
    pass_time(broker, 3)
    broker.simulation.disk.capacity_bytes = 0
    pass_time(broker, BACKOFF_SECONDS)
    assert offsets(broker, name) == [*range(20)]
    names = broker.simulation.disk.list_directory(f"/data/{name}-0")
    assert not [each for each in names if each.endswith((".cleaned", ".swap"))]
    assert any("could not be compacted" in record.getMessage() for record in caplog.records)
    caplog.clear()
    broker.simulation.disk.capacity_bytes = None
    pass_time(broker, BACKOFF_SECONDS)
    assert len(offsets(broker, name)) < 20
    caplog.clear()


def test_appends_go_on_while_a_log_is_compacted(broker: SimulatedBroker, name: str) -> None:
    fill(broker, name)
    pass_time(broker, 3)
    compaction = compaction_of(broker)
    broker.run(compaction.run(NOW_MS))
    number = 20
    while compaction.is_running:
        put(broker, name, b"new-%d" % number, b"value")
        number += 1
    assert [record.offset for record in records_of(broker.partition(name).log)][-(number - 20) :] == [
        *range(20, number)
    ]
    headers = headers_of(broker.partition(name).log)
    assert all(earlier.last_offset < later.base_offset for earlier, later in pairwise(headers))


def test_a_broker_that_stops_in_the_middle_leaves_the_old_segments(broker: SimulatedBroker, name: str) -> None:
    fill(broker, name)
    pass_time(broker, 3)
    compaction = compaction_of(broker)
    broker.run(compaction.run(NOW_MS))
    broker.step(1)
    broker.restart()
    assert offsets(broker, name)[-2:] == [18, 19]
    pass_time(broker, BACKOFF_SECONDS)
    assert len(offsets(broker, name)) < 20


def test_a_checkpoint_is_written_to_its_end_when_its_topic_is_deleted(name: str) -> None:
    """Two concurrent writes of the checkpoint would use the same temporary file."""
    workers = HeldWorkers()
    broker = SimulatedBroker(workers)
    fill(broker, name, segment_ms="100000")
    pass_time(broker, 3)
    workers.held.add("write")
    broker.run(compaction_of(broker).run(NOW_MS))
    broker.step(50)
    assert workers.waiting == ["write"]
    deletion = broker.begin(DeleteTopicsRequest(topic_names=[name]), DeleteTopicsResponse, 3)
    broker.step(50)
    assert workers.waiting == ["write"]
    workers.release_all()
    assert deletion.result().responses[0].error_code == ErrorCode.NONE
    broker.run(broker.node.stop())
    assert (name, 0) not in checkpoint(broker)
    broker.close()


def test_a_hung_disk_does_not_stop_the_compaction_of_other_disks(name: str) -> None:
    workers = HeldWorkers()
    broker = SimulatedBroker(workers, log_dirs="/one,/two")
    other = f"{name}-other"
    fill(broker, name, segment_ms="100000")
    fill(broker, other, segment_ms="100000")
    assert [broker.partition(each).directory.path for each in (name, other)] == ["/one", "/two"]
    pass_time(broker, 3)
    workers.hung.add("/two")
    for _ in range(2):
        pass_time(broker, BACKOFF_SECONDS)
        assert len(offsets(broker, name)) < 20
        assert len(offsets(broker, other)) == 20
        for number in range(8):
            put(broker, name, b"new", b"%d" % number)
        pass_time(broker, 2)
    workers.release_all()
    pass_time(broker, BACKOFF_SECONDS)
    assert len(offsets(broker, other)) < 20
    broker.close()


@pytest.mark.parametrize(("work", "is_done"), [("_assess", True), ("discard_unused", False), ("write", False)])
def test_a_disk_that_hangs_at_any_time_does_not_stop_the_compaction_of_other_disks(
    name: str, work: str, is_done: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After its log was assessed, and after its log was compacted."""
    workers = HeldWorkers()
    broker = SimulatedBroker(workers, log_dirs="/one,/two")
    other = f"{name}-other"
    for each in (name, other):
        fill(broker, each, segment_ms="100000")
    hung = broker.partition(other).directory
    pass_time(broker, 3)
    pool = type(workers.for_directory("/two").files)
    run = pool.run

    async def hang_at(self: Any, function: Callable[..., object], *args: object) -> object:
        is_next = self._path == hung.path and function.__name__ == work
        if is_next and not is_done:
            workers.hung.add(hung.path)
        outcome = await run(self, function, *args)
        if is_next:
            workers.hung.add(hung.path)
        return outcome

    monkeypatch.setattr(pool, "run", hang_at)
    pass_time(broker, BACKOFF_SECONDS)
    assert hung.path in workers.hung
    for number in range(40):
        put(broker, name, b"new", b"%d" % number)
    pass_time(broker, 2 + BACKOFF_SECONDS)
    assert len(offsets(broker, name)) < 20
    monkeypatch.undo()
    workers.release_all()
    pass_time(broker, BACKOFF_SECONDS)
    assert len(offsets(broker, other)) < 20
    broker.close()


def test_a_log_that_changes_before_its_turn_is_assessed_again(name: str) -> None:
    workers = HeldWorkers()
    broker = SimulatedBroker(workers, log_dirs="/one,/two")
    other = f"{name}-other"
    for each in (name, other):
        fill(broker, each, segment_ms="100000")
    pass_time(broker, 3)
    compaction = compaction_of(broker)
    broker.run(compaction._turn.acquire())  # as while another log is compacted
    broker.run(compaction.run(NOW_MS))
    broker.step(50)
    broker.partition(other).log.advance_log_start_offset(9)
    compaction._turn.release()
    broker.run(compaction.settle())
    assert len(offsets(broker, name)) < 20
    kept = offsets(broker, other)
    assert kept[0] >= 9
    assert len(kept) < 11
    broker.close()


def test_each_compaction_of_a_long_round_goes_by_its_own_time(
    broker: SimulatedBroker, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A busy log directory always has a log to compact: with the time of the round's begin, tombstones would never
    expire, and new ones would expire too soon."""
    clock, times = broker.simulation.clock, []

    def take_a_minute(context: BackgroundContext, job: CompactionJob) -> Iterator[Any]:
        times.append((job.now_ms, clock.now_ms()))
        clock.advance(60_000)
        yield from compact(context, job)

    monkeypatch.setattr("odradek.replica.compaction.compact", take_a_minute)
    for topic in (name, "other", "another"):
        fill(broker, topic)
    pass_time(broker, BACKOFF_SECONDS)
    broker.run(compaction_of(broker).settle())
    assert len(times) == 3
    assert all(abs(job_ms - now_ms) <= 1 for job_ms, now_ms in times)


def test_a_failed_compaction_is_tried_again_in_a_long_round(
    broker: SimulatedBroker, name: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    directories = []

    def fail_at_first(context: BackgroundContext, job: CompactionJob) -> Iterator[Any]:
        directories.append(job.directory)
        if len(directories) == 1:
            raise RuntimeError("once")
        broker.simulation.clock.advance(BACKOFF_SECONDS * 1000)
        yield from compact(context, job)

    monkeypatch.setattr("odradek.replica.compaction.compact", fail_at_first)
    for topic in (name, "other"):
        fill(broker, topic)
    pass_time(broker, 3)  # only what is on the disk is compacted
    compaction = compaction_of(broker)
    broker.run(compaction.run(NOW_MS))
    broker.run(asyncio.wait(compaction._rounds._running.values()))
    assert directories == [f"/data/{name}-0", "/data/other-0", f"/data/{name}-0"]
    caplog.clear()


def follow_another(broker: SimulatedBroker, topic: str) -> Partition:
    change_partition(broker, topic, 0, leader=ELSEWHERE, replicas=(HERE, ELSEWHERE))
    return broker.partition(topic)


class HeldBackground(InlineBackground):
    """Its work takes until `may_continue` is set."""

    may_continue: asyncio.Event

    async def stream(self, *args: Any, **kwargs: Any) -> AsyncGenerator[Any, None]:
        async for item in super().stream(*args, **kwargs):
            await self.may_continue.wait()
            yield item


def test_a_truncation_ends_the_compaction_of_its_log(broker: SimulatedBroker, name: str) -> None:
    """The newer values that replace those of the cleaned segments may be cut off."""
    fill(broker, name, segment_ms="100000")
    pass_time(broker, 3)  # only what is on the disk is compacted
    follower = follow_another(broker, name)
    compaction = compaction_of(broker)
    background = HeldBackground(broker.simulation.background_context, broker.simulation.chance)
    background.may_continue = asyncio.Event()
    compaction._host = replace(compaction._host, background=background)
    broker.run(compaction.run(NOW_MS))
    broker.step(50)
    broker.run(follower.follower_log.truncate_to(12))
    background.may_continue.set()
    broker.run(compaction.settle())
    assert offsets(broker, name) == [*range(12)]


def test_records_that_replace_truncated_ones_count_as_dirty(broker: SimulatedBroker, name: str) -> None:
    """Also after a restart."""
    fill(broker, name, count=30)
    pass_time(broker, BACKOFF_SECONDS)
    clean_offset = checkpoint(broker)[name, 0]
    follower = follow_another(broker, name)
    broker.run(follower.follower_log.truncate_to(3))
    assert checkpoint(broker)[name, 0] <= follower.log.log_end_offset < clean_offset
    while follower.log.log_end_offset < 2 * clean_offset:
        fetched = build_batch([Record(0, NOW_MS, b"%d" % (follower.log.log_end_offset % 2), b"value")])
        assign_offset(fetched, 0, follower.log.log_end_offset, follower.leader_epoch)
        follower.follower_log.append(memoryview(fetched))
        follower.log.roll()
    follower.follower_log.follow_offsets(follower.log.log_end_offset, 0)
    broker.restart()
    pass_time(broker, BACKOFF_SECONDS)
    active = broker.partition(name).log.segments[-1].base_offset
    assert len([offset for offset in offsets(broker, name) if offset < active]) == 2, "one record of each key"


def test_nothing_after_the_begin_of_an_open_transaction_is_compacted(broker: SimulatedBroker, name: str) -> None:
    create_topic(broker, name, cleanup_policy="compact", **SMALL_SEGMENTS)
    for number in range(8):
        put(broker, name, b"k", b"%d" % number)
    partition = broker.partition(name)
    put_in_transaction(partition, 1, b"open", key=b"other")
    for number in range(8):
        put(broker, name, b"k", b"%d" % number)
    pass_time(broker, BACKOFF_SECONDS)
    (cleaned_to,) = checkpoint(broker).values()
    assert cleaned_to <= 8
    assert [*range(8, 17)] == offsets(broker, name)[-9:]
    commit(partition, 1)
    for number in range(8):
        put(broker, name, b"k", b"%d" % number)
    pass_time(broker, BACKOFF_SECONDS)
    assert 8 in offsets(broker, name), "the only record of its key"
    assert len(offsets(broker, name)) < 8


def test_a_transaction_that_was_aborted_in_the_active_segment_is_removed(broker: SimulatedBroker, name: str) -> None:
    """The index of the active segment has no file."""
    create_topic(broker, name, cleanup_policy="compact", **SMALL_SEGMENTS)
    partition = broker.partition(name)
    put(broker, name, b"k", b"stays")
    aborted_offset = put_in_transaction(partition, 1, b"aborted", key=b"k")
    for number in range(4):
        put(broker, name, b"%d" % number, b"")
    marker_offset = abort(partition, 1)
    assert partition.log.segments[-1].base_offset <= marker_offset
    assert partition.log.segments[-1].base_offset > aborted_offset
    pass_time(broker, BACKOFF_SECONDS)
    left = {record.offset: record.value for record in records_of(partition.log)}
    assert aborted_offset not in left
    assert left[0] == b"stays"
    aborted = collect_aborted(partition.log.segments, 0, marker_offset + 1)
    assert [each.first_offset for each in aborted] == [aborted_offset]
