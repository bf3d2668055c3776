"""Removing the end of a log while others read it, flush it, or lose power."""

import threading
from collections.abc import Callable

import pytest

from odradek.host.host import Host
from odradek.host.slices import FileSlice
from odradek.log.aborted_transactions import collect_aborted
from odradek.log.cleaned_segment import CleanedSegment
from odradek.log.log_config import LogConfig
from odradek.log.partition_log import PartitionLog
from odradek.log.retention import expire_to
from odradek.log.transaction_index import TRANSACTION_INDEX_SUFFIX, AbortedTransaction, decode_transaction_index
from odradek.protocol.batch import read_batch_header
from odradek.protocol.control_records import ControlRecordType, EndTransactionMarker
from odradek.protocol.errors import ErrorCode
from tests.log.batches import append, make_batch, open_log, read_all, split
from tests.log.compaction.compacted_logs import compact_log, keyed_batch
from tests.log.interleaving import first_missing_step, interrupt_at_every_step, interrupt_at_step
from tests.simulation.simulated_host import Simulation

DIRECTORY = "/data/topic-0"
LARGE = 1 << 20
CONFIG = LogConfig(index_interval_bytes=100)


def make_log(simulation: Simulation, *, roll_after: tuple[int, ...] = ()) -> tuple[PartitionLog, list[bytes]]:
    """Eight batches of one record, each in an epoch of its own."""
    if simulation.disk.exists(DIRECTORY):
        simulation.disk.remove_tree(DIRECTORY)
    log = open_log(simulation.host, DIRECTORY, CONFIG)
    batches = [make_batch([b"old" * (number + 1)], producer=(1, 0, number)) for number in range(8)]
    for number, batch in enumerate(batches):
        append(log, batch, number)
        if number in roll_after:
            log.roll()
    return log, [bytes(batch) for batch in batches]


def truncate_and_append(log: PartitionLog, offset: int) -> None:
    log.truncate_to(offset)
    for number in range(4):
        append(log, make_batch([b"new" * 20], producer=(1, 0, offset + number)), 9)


def read(log: PartitionLog, offset: int, end_offset: int) -> bytes | ErrorCode | None:
    piece = log.read(offset, LARGE, end_offset, whole_first_batch=True)
    return piece.read() if isinstance(piece, FileSlice) else piece


TRUNCATIONS: list[tuple[tuple[int, ...], int]] = [
    ((), 5),  # within the active segment
    ((), 0),  # to an empty log
    ((3,), 6),  # the segment before stays
    ((3,), 4),  # to the beginning of the active segment
    ((3,), 2),  # within the segment before
    ((1, 3, 5), 3),
]


@pytest.mark.parametrize(("roll_after", "offset"), TRUNCATIONS)
def test_reads_during_a_truncation_return_old_records_or_none(
    simulation: Simulation, roll_after: tuple[int, ...], offset: int
) -> None:
    log, batches = make_log(simulation, roll_after=roll_after)

    def check_reads() -> None:
        for fetch_offset, end_offset in ((0, 8), (max(0, offset - 1), 8), (0, offset), (offset, 8), (7, 8)):
            found = read(log, fetch_offset, end_offset)
            if isinstance(found, bytes):
                assert b"".join(batches[fetch_offset:end_offset]).startswith(found)
                first_offset = next(split(found))[0].base_offset
                assert first_offset == fetch_offset
            elif found is ErrorCode.OFFSET_OUT_OF_RANGE:
                assert fetch_offset >= offset or offset == 0
            else:
                assert found is None
                assert fetch_offset >= min(offset, end_offset)

    _, steps = interrupt_at_every_step(lambda: log.truncate_to(offset), check_reads)
    assert steps > 20
    assert (log.log_end_offset, read_all(log)) == (offset, batches[:offset])


@pytest.mark.parametrize(("roll_after", "offset"), TRUNCATIONS)
@pytest.mark.parametrize(("fetch_offset", "end_offset"), [(0, 8), (3, 8), (6, 7)])
def test_a_truncation_during_a_read_mixes_no_records(
    simulation: Simulation, roll_after: tuple[int, ...], offset: int, fetch_offset: int, end_offset: int
) -> None:
    """Other records take the offsets at once. A read sees the old ones, or the log as it is after both."""

    def read_with_truncation_at(step: int) -> bool:
        log, batches = make_log(simulation, roll_after=roll_after)
        found, has_step = interrupt_at_step(
            lambda: log.read(fetch_offset, LARGE, end_offset, whole_first_batch=True),
            step,
            lambda: truncate_and_append(log, offset),
        )
        if isinstance(found, FileSlice):
            data = found.read()  # shorter than the slice when the truncation came after the read
            after = read(log, fetch_offset, end_offset)
            assert after is not None
            is_old = b"".join(batches[fetch_offset:end_offset]).startswith(data)
            assert is_old or (isinstance(after, bytes) and data == after)
        elif has_step:
            assert found is None or found is ErrorCode.OFFSET_OUT_OF_RANGE
            assert fetch_offset >= min(offset, end_offset) or found is None
        return has_step

    assert first_missing_step(read_with_truncation_at) > 20


@pytest.mark.parametrize(("roll_after", "offset"), TRUNCATIONS)
def test_a_slice_in_flight_never_shows_records_that_were_appended_later(
    simulation: Simulation, roll_after: tuple[int, ...], offset: int
) -> None:
    log, batches = make_log(simulation, roll_after=roll_after)
    slices = [log.read(number, LARGE, 8, whole_first_batch=True) for number in range(8)]
    truncate_and_append(log, offset)
    for number, piece in enumerate(slices):
        assert isinstance(piece, FileSlice)
        data = piece.read()
        assert b"".join(batches[number:]).startswith(data)
        if number < offset:
            assert data.startswith(batches[number])


def test_producers_epochs_indexes_and_snapshots_are_those_of_what_is_left(simulation: Simulation) -> None:
    for offset in range(8):
        log, batches = make_log(simulation, roll_after=(1, 4, 6))
        log.truncate_to(offset)
        entry = log.producers.entries.get(1)
        assert (entry.next_sequence if entry else 0) == offset
        assert log.leader_epochs.entries == tuple((number, number) for number in range(offset))
        assert (log.log_end_offset, log.recovery_point_offset) == (offset, offset)
        assert log.size_bytes == sum(map(len, batches[:offset])) == sum(each.size_bytes for each in log.segments)
        names = simulation.disk.list_directory(DIRECTORY)
        assert max((int(name[:20]) for name in names if name.endswith(".snapshot")), default=0) <= offset
        found = log.max_timestamp_offset()
        assert (found.offset if found else -1) == (0 if offset else -1)
        truncate_and_append(log, offset)
        log.flush()
        simulation.crash()
        again = open_log(simulation.host, DIRECTORY, CONFIG, clean_shutdown=False, recovery_point_offset=offset)
        assert read_all(again)[:offset] == batches[:offset]
        assert again.producers.entries[1].next_sequence == again.log_end_offset == offset + 4
        assert again.leader_epochs.entries == (*((number, number) for number in range(offset)), (9, offset))


def test_an_epoch_that_begins_at_the_log_end_is_removed(simulation: Simulation) -> None:
    log, _ = make_log(simulation)
    log.leader_epochs.assign(20, 8)
    log.truncate_to(8)
    assert log.leader_epochs.latest_epoch == 7
    assert log.log_end_offset == 8


def test_a_segment_with_a_damaged_index_is_cut_by_its_batches(simulation: Simulation) -> None:
    log, batches = make_log(simulation, roll_after=(5,))
    for suffix in (".index", ".timeindex"):
        simulation.disk.remove(log.segments[0].path(suffix))
    log.segments[0].release()
    simulation.disk.replace_file(log.segments[0].path(".index"), b"")
    log.truncate_to(4)
    assert read_all(log) == batches[:4]
    assert simulation.disk.file_size(log.segments[0].path(".timeindex")) > 0


def write_aborted_transactions(log: PartitionLog) -> list[AbortedTransaction]:
    """Two transactions, of which the first ends at offset 3 and the second at offset 6."""
    for producer_id in (1, 2):
        append(log, keyed_batch([(b"k", b"v")], producer=(producer_id, 0, 0), is_transactional=True))
    append(log, keyed_batch([(b"k", b"v")], producer=(1, 0, 1), is_transactional=True))
    log.append_marker(EndTransactionMarker(1, 0, ControlRecordType.ABORT, 0), 0, transaction_version=1)
    for sequence in (1, 2):
        append(log, keyed_batch([(b"k", b"v")], producer=(2, 0, sequence), is_transactional=True))
    log.append_marker(EndTransactionMarker(2, 0, ControlRecordType.ABORT, 0), 0, transaction_version=1)
    return [AbortedTransaction(0, 1, 3, 1), AbortedTransaction(1, 2, 6, 7)]


@pytest.mark.parametrize("is_rolled", [False, True])
def test_aborted_transactions_go_with_their_markers(simulation: Simulation, is_rolled: bool) -> None:
    log = open_log(simulation.host, DIRECTORY, CONFIG)
    aborted = write_aborted_transactions(log)
    if is_rolled:
        log.roll()
    assert collect_aborted(log.segments, 0, 7) == aborted
    path = log.segments[0].path(TRANSACTION_INDEX_SUFFIX)
    log.truncate_to(5)
    assert collect_aborted(log.segments, 0, 5) == aborted[:1]
    assert list(decode_transaction_index(simulation.disk.read_file(path))) == aborted[:1]
    assert log.producers.transactions.open == {2: 1}
    log.truncate_to(3)
    assert collect_aborted(log.segments, 0, 3) == []
    assert not simulation.disk.exists(path)
    assert log.producers.transactions.open == {1: 0, 2: 1}


def test_a_damaged_transaction_index_is_rebuilt_when_its_segment_is_cut(simulation: Simulation) -> None:
    log = open_log(simulation.host, DIRECTORY, CONFIG)
    aborted = write_aborted_transactions(log)
    log.roll()
    simulation.disk.replace_file(log.segments[0].path(TRANSACTION_INDEX_SUFFIX), b"damaged")
    log.truncate_to(5)
    assert collect_aborted(log.segments, 0, 5) == aborted[:1]


class PowerLoss(Exception):
    pass


@pytest.mark.parametrize(("roll_after", "offset"), TRUNCATIONS)
@pytest.mark.parametrize("is_killed", [False, True])
def test_power_loss_at_any_disk_operation_leaves_a_log_without_holes(
    simulation: Simulation, roll_after: tuple[int, ...], offset: int, is_killed: bool
) -> None:
    """The checkpoint on the disk still has the recovery point from before the truncation."""

    def truncate_with_power_loss_at(operation: int) -> bool:
        log, batches = make_log(simulation, roll_after=roll_after)
        log.flush()
        simulation.disk.operations_left, simulation.disk.interruption = operation, PowerLoss()
        is_interrupted = False
        try:
            log.truncate_to(offset)
        except PowerLoss:
            is_interrupted = True
        simulation.disk.operations_left = None
        if is_killed:
            simulation.disk.kill()
        else:
            simulation.crash()
        again = open_log(simulation.host, DIRECTORY, CONFIG, clean_shutdown=False, recovery_point_offset=8)
        end_offset = again.log_end_offset
        assert offset <= end_offset <= (8 if is_interrupted else offset)
        assert read_all(again) == batches[:end_offset]
        assert again.leader_epochs.entries == tuple((number, number) for number in range(end_offset))
        entry = again.producers.entries.get(1)
        assert (entry.next_sequence if entry else 0) == end_offset
        return is_interrupted

    assert first_missing_step(truncate_with_power_loss_at) >= 3


def make_compacted_log(simulation: Simulation, segment_bytes: int) -> PartitionLog:
    """One key, whose newest record is at offset 7. Either one segment has only its batch, or one segment ends with an
    empty batch at offset 3 and the next one has that at offset 7."""
    if simulation.disk.exists(DIRECTORY):
        simulation.disk.remove_tree(DIRECTORY)
    config = LogConfig(index_interval_bytes=100, is_compacted=True, segment_bytes=segment_bytes)
    log = open_log(simulation.host, DIRECTORY, config)
    for number in range(8):
        append(log, make_batch(producer=(1, 0, number)), number)
        if number in (3, 7):
            log.roll()
    log.flush()
    compact_log(simulation, log)
    assert log.size_bytes < 2 * len(make_batch())
    return log


def reopen_compacted_log(simulation: Simulation, log: PartitionLog, **checkpoints: int) -> PartitionLog:
    return open_log(simulation.host, DIRECTORY, log.config, clean_shutdown=False, **checkpoints)


@pytest.mark.parametrize("segment_bytes", [400, LARGE])
@pytest.mark.parametrize("offset", [1, 2, 3, 5, 7])
def test_a_truncation_into_a_gap_keeps_the_log_start(simulation: Simulation, segment_bytes: int, offset: int) -> None:
    log = make_compacted_log(simulation, segment_bytes)
    log.advance_log_start_offset(1)
    log.truncate_to(offset)
    epochs = tuple((number, number) for number in range(1, offset))
    for _ in range(3):
        assert (log.log_start_offset, log.log_end_offset, log.leader_epochs.entries) == (1, offset, epochs)
        for fetch_offset in range(max(1, min(offset, 4)), offset + 1):
            assert read(log, fetch_offset, offset) is None
        simulation.crash()
        log = reopen_compacted_log(simulation, log, recovery_point_offset=offset, log_start_offset=1)
    simulation.crash()
    log = reopen_compacted_log(simulation, log)
    assert (log.log_start_offset, log.log_end_offset) == (0, offset)
    append(log, make_batch([b"new"]), 9)
    log.close()
    log = open_log(simulation.host, DIRECTORY, log.config, log_start_offset=1)
    assert (log.log_start_offset, log.log_end_offset) == (1, offset + 1)
    assert read_batch_header(read_all(log)[-1]).base_offset == offset
    log.truncate_to(offset)
    log.truncate_to(0)
    assert (log.log_start_offset, log.log_end_offset, log.leader_epochs.entries) == (0, 0, ())


@pytest.mark.parametrize(("segment_bytes", "offset"), [(LARGE, 5), (400, 1), (400, 5)])
@pytest.mark.parametrize("is_killed", [False, True])
@pytest.mark.parametrize("recovery_point_offset", [0, 8], ids=["without a checkpoint", "with a checkpoint"])
def test_power_loss_during_a_truncation_into_a_gap_moves_neither_end_too_far(
    simulation: Simulation, segment_bytes: int, offset: int, is_killed: bool, recovery_point_offset: int
) -> None:
    def truncate_with_power_loss_at(operation: int) -> bool:
        log = make_compacted_log(simulation, segment_bytes)
        simulation.disk.operations_left, simulation.disk.interruption = operation, PowerLoss()
        is_interrupted = False
        try:
            log.truncate_to(offset)
        except PowerLoss:
            is_interrupted = True
        simulation.disk.operations_left = None
        (simulation.disk.kill if is_killed else simulation.crash)()
        log = reopen_compacted_log(simulation, log, recovery_point_offset=recovery_point_offset)
        assert log.log_start_offset == 0
        assert offset <= log.log_end_offset <= (8 if is_interrupted else offset)
        assert max((read_batch_header(each).base_offset for each in read_all(log)), default=-1) < log.log_end_offset
        assert len(log.leader_epochs.entries) == log.log_end_offset
        return is_interrupted

    assert first_missing_step(truncate_with_power_loss_at) >= 3


def test_after_a_failure_while_files_change_the_log_has_failed(
    simulation: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, _ = make_log(simulation)

    def fail(_: object) -> None:
        raise OSError("broken")

    monkeypatch.setattr(type(log.segments[0]), "cut_file", fail)
    with pytest.raises(OSError, match="broken"):
        log.truncate_to(4)
    assert (log.has_failed, log.is_truncating) == (True, False)
    with pytest.raises(OSError, match="restart the broker"):
        log.append_as_follower(memoryview(b""))


def test_retention_and_compaction_leave_a_log_that_is_being_truncated(simulation: Simulation) -> None:
    log, batches = make_log(simulation, roll_after=(1, 3))
    log.begin_truncation()
    expire_to(log, 4)
    assert log.log_start_offset == 0
    assert not log.replace_segments(log.segments[:1], CleanedSegment(0, 0, 0, False))
    assert log.remove_segments_before_start(LARGE) == 0
    with pytest.raises(AssertionError):
        log.append_as_follower(memoryview(b""))
    log.truncate_to(5)
    assert not log.is_truncating
    assert read_all(log) == batches[:5]
    expire_to(log, 2)
    assert log.remove_segments_before_start(LARGE) == 1


def _run_beside(first: Callable[[], None], second: Callable[[], None], entered: threading.Event) -> threading.Thread:
    """`first` runs on a thread; when it has entered what the test holds, `second` runs on another."""
    threads = [threading.Thread(target=first), threading.Thread(target=second)]
    threads[0].start()
    assert entered.wait(10)
    threads[1].start()
    return threads[1]


@pytest.mark.parametrize("flush_is_first", [True, False])
def test_a_flush_and_a_truncation_wait_for_each_other(
    host: Host, directory: str, monkeypatch: pytest.MonkeyPatch, flush_is_first: bool
) -> None:
    log = open_log(host, directory)
    for _ in range(8):
        append(log, make_batch())
    entered, release = threading.Event(), threading.Event()
    file_class = type(log.segments[-1].file)
    sync = file_class.sync

    def held_sync(file: object) -> None:
        if not entered.is_set():
            entered.set()
            assert release.wait(10)
        sync(file)  # type: ignore[arg-type]  # the class of the real disk

    monkeypatch.setattr(file_class, "sync", held_sync)
    steps: list[tuple[Callable[[], None], int]] = [(log.flush, 8), (lambda: log.truncate_to(5), 5)]
    (first, _), (second, _) = steps if flush_is_first else steps[::-1]
    waiting = _run_beside(first, second, entered)
    assert waiting.is_alive()
    assert log.recovery_point_offset == 0
    release.set()
    waiting.join(10)
    assert not waiting.is_alive()
    assert (log.log_end_offset, log.recovery_point_offset) == (5, 5)


def test_a_truncation_that_removes_nothing_ends(host: Host, directory: str) -> None:
    log = open_log(host, directory)
    append(log, make_batch([b"a"]), 1)
    log.begin_truncation()
    log.truncate_to(log.log_end_offset)
    assert not log.is_truncating
    log.close()


class Repeated:
    """Functions that run again and again, each on a thread of its own, until `stop`."""

    def __init__(self, *functions: Callable[[], None]) -> None:
        self._stopping = threading.Event()
        self._problems: list[BaseException] = []
        self._threads = [threading.Thread(target=self._repeat, args=(function,)) for function in functions]
        for thread in self._threads:
            thread.start()

    def _repeat(self, function: Callable[[], None]) -> None:
        try:
            while not self._stopping.is_set():
                function()
        except BaseException as problem:
            self._problems.append(problem)

    def stop(self) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join(10)
        assert self._problems == []


def test_readers_on_threads_survive_many_truncations(host: Host, directory: str) -> None:
    log = open_log(host, directory, LogConfig(segment_bytes=2000, index_interval_bytes=200))

    def read_everything() -> None:
        end_offset = log.log_end_offset
        for offset in range(0, end_offset, 7):
            piece = log.read(offset, LARGE, end_offset, whole_first_batch=True)
            # A slice may be short, because its file may be cut after the read; its whole batches are right.
            for header, batch in split(piece.read()) if isinstance(piece, FileSlice) else ():
                assert b"offset=%d;" % header.base_offset in batch

    def flush_and_search() -> None:
        log.flush()
        log.offset_for_timestamp(0)

    repeated = Repeated(read_everything, flush_and_search)
    for number in range(25):
        for _ in range(20):
            offset = log.log_end_offset
            append(log, make_batch([b"offset=%d;" % offset + b"x" * (offset % 90)]), number)
        log.truncate_to(log.log_end_offset - 11)
        for path in log.take_removed_files():
            host.disk.remove(path)
    repeated.stop()
    log.close()
    assert len(read_all(open_log(host, directory))) == log.log_end_offset
