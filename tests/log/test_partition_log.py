"""Appending to and reading from one partition, on real files."""

import os
import threading
from pathlib import Path

import pytest

from odradek.host.host import Host
from odradek.host.slices import FileSlice
from odradek.log.log_config import LogConfig, TimestampType
from odradek.log.partition_log import PartitionLog
from odradek.protocol.batch import has_valid_checksum, read_batch_header
from odradek.protocol.compression import Compression
from odradek.protocol.errors import ErrorCode
from odradek.protocol.records import read_records
from tests.alone import call_alone, open_descriptors
from tests.log.batches import EVERYTHING, NOW_MS, append, delete_before, make_batch, open_log, read_all, split


def read(log: PartitionLog, offset: int, max_bytes: int = 1 << 20) -> bytes:
    piece = log.read(offset, max_bytes, log.log_end_offset, whole_first_batch=True)
    assert isinstance(piece, FileSlice)
    return piece.read()


def test_a_copy_that_replaces_a_log_has_all_its_paths_in_the_new_directory(host: Host, directory: str) -> None:
    log, copy = open_log(host, directory), open_log(host, f"{directory}-future")
    for _ in range(3):
        append(copy, make_batch())
        copy.roll()
    copy.truncate_fully_and_start_at(0)
    os.rename(f"{directory}-future", f"{directory}-moved")
    copy.replace_log(log, f"{directory}-moved")
    removed = copy.take_removed_files()
    assert removed
    assert all(os.path.exists(path) for path in removed)


def test_a_new_log_is_empty(host: Host, directory: str) -> None:
    log = open_log(host, directory)
    assert (log.log_start_offset, log.log_end_offset, log.size_bytes) == (0, 0, 0)
    assert log.read(0, 1, EVERYTHING, whole_first_batch=True) is None
    assert log.read(1, 1, EVERYTHING, whole_first_batch=True) is ErrorCode.OFFSET_OUT_OF_RANGE
    assert log.max_timestamp_offset() is None
    assert log.offset_for_timestamp(0) is None
    assert os.listdir(directory) == ["00000000000000000000.log"]


def test_the_file_is_what_was_sent_with_offset_and_epoch_in_place(host: Host, directory: str) -> None:
    log = open_log(host, directory)
    first, second = make_batch([b"a", b"b"]), make_batch([b"c"], compression=Compression.LZ4)
    sent = bytes(first), bytes(second)
    assert (append(log, first, 3), append(log, second, 4)) == (0, 2)
    stored = Path(directory, "00000000000000000000.log").read_bytes()
    assert stored == bytes(first) + bytes(second)
    for (header, batch), original, base_offset, epoch in zip(split(stored), sent, (0, 2), (3, 4), strict=True):
        assert (header.base_offset, header.partition_leader_epoch) == (base_offset, epoch)
        assert has_valid_checksum(batch, 0, header)
        assert (batch[8:12], batch[16:]) == (original[8:12], original[16:])
    assert [log.epoch_end_offset(epoch) for epoch in (3, 4, 5)] == [(3, 2), (4, 3), (-1, -1)]


def test_a_refused_batch_changes_nothing(host: Host, directory: str) -> None:
    log = open_log(host, directory)
    batch = make_batch(producer=(1, 0, 0))
    batch[-1] ^= 1
    result = log.append(batch, 0)
    assert (result.error, result.base_offset, result.last_offset) == (ErrorCode.CORRUPT_MESSAGE, -1, -1)
    assert (log.log_end_offset, log.size_bytes, len(log.producers.entries)) == (0, 0, 0)


def test_a_fetch_from_the_middle_of_a_batch_returns_the_whole_batch(host: Host, directory: str) -> None:
    log = open_log(host, directory)
    batches = [make_batch([b"x"] * 5) for _ in range(3)]
    for batch in batches:
        append(log, batch)
    for offset in range(15):
        assert read(log, offset) == b"".join(map(bytes, batches[offset // 5 :]))


def test_the_first_batch_is_whole_and_the_last_may_be_cut(host: Host, directory: str) -> None:
    log = open_log(host, directory)
    batch = make_batch([b"x" * 100])
    size = len(batch)
    for _ in range(3):
        append(log, make_batch([b"x" * 100]))
    assert len(read(log, 0, 1)) == size
    assert len(read(log, 0, size + 1)) == size + 1
    cut = log.read(1, size + 10, 3, whole_first_batch=False)
    assert isinstance(cut, FileSlice)
    assert (cut.position, len(cut)) == (size, size + 10)
    assert log.read(1, size - 1, 3, whole_first_batch=False) is None, "a part of a batch is not returned"
    assert log.read(0, 0, 3, whole_first_batch=False) is None


def test_reads_stop_at_the_high_watermark(host: Host, directory: str) -> None:
    log = open_log(host, directory)
    batches = [make_batch([b"x", b"y"]) for _ in range(3)]
    for batch in batches:
        append(log, batch)
    piece = log.read(1, 1 << 20, 4, whole_first_batch=True)
    assert isinstance(piece, FileSlice)
    assert piece.read() == bytes(batches[0]) + bytes(batches[1])
    assert log.read(4, 1 << 20, 4, whole_first_batch=True) is None
    assert log.read(5, 1 << 20, 4, whole_first_batch=True) is None


def test_a_consumer_at_the_tail_needs_no_disk(host: Host, directory: str) -> None:
    log = open_log(host, directory, LogConfig(index_interval_bytes=100))
    for _ in range(3000):
        append(log, make_batch([b"x"]))
    assert not log.needs_disk(2999)
    assert not log.needs_disk(2600)
    assert log.needs_disk(10)
    assert read_batch_header(read(log, 10)).base_offset == 10
    log.roll()
    assert log.needs_disk(2999)


def test_every_offset_is_found_through_the_index(host: Host, directory: str) -> None:
    config = LogConfig(index_interval_bytes=300, segment_bytes=10_000)
    log = open_log(host, directory, config)
    for number in range(400):
        append(log, make_batch([b"x" * (number % 50)] * (1 + number % 3)))
    assert len(log.segments) > 3
    for offset in range(0, log.log_end_offset, 7):
        header = read_batch_header(read(log, offset))
        assert header.base_offset <= offset <= header.last_offset


def test_one_read_stays_in_one_segment_and_the_next_goes_on(host: Host, directory: str) -> None:
    log = open_log(host, directory)
    append(log, make_batch([b"a"]))
    log.roll()
    log.roll()  # an empty segment is not rolled again
    append(log, make_batch([b"b"]))
    assert [segment.base_offset for segment in log.segments] == [0, 1]
    assert [header.base_offset for header, _ in split(read(log, 0))] == [0]
    assert [header.base_offset for header, _ in split(read(log, 1))] == [1]


def test_log_append_time_stamps_the_batch(host: Host, directory: str) -> None:
    log = open_log(host, directory, LogConfig(message_timestamp_type=TimestampType.LOG_APPEND_TIME))
    before = host.clock.now_ms()
    result = log.append(make_batch([b"a", b"b"], timestamps=[1, 2], producer=(1, 0, 0)), 0)
    assert before <= result.log_append_time_ms <= host.clock.now_ms()
    stored = read(log, 0)
    header = read_batch_header(stored)
    assert header.uses_log_append_time
    assert has_valid_checksum(stored, 0, header)
    assert {record.timestamp for record in read_records(stored, 1000)} == {result.log_append_time_ms}
    repeated = log.append(make_batch([b"a", b"b"], timestamps=[1, 2], producer=(1, 0, 0)), 0)
    assert (repeated.is_duplicate, repeated.log_append_time_ms) == (True, result.log_append_time_ms)


def test_settings_change_while_the_log_is_open(host: Host, directory: str) -> None:
    log = open_log(host, directory)
    append(log, make_batch([b"x" * 1000]))
    log.configure(LogConfig(compression_type="zstd"))
    append(log, make_batch([b"x" * 1000]))
    log.configure(LogConfig(is_compacted=True))
    assert log.append(make_batch(key=None), 0).error is ErrorCode.INVALID_RECORD
    codecs = [header.compression for header, _ in split(read(log, 0))]
    assert codecs == [Compression.NONE, Compression.ZSTD]


def test_a_duplicate_is_answered_with_the_original_offsets(host: Host, directory: str) -> None:
    log = open_log(host, directory)
    append(log, make_batch())
    append(log, make_batch([b"a", b"b"], producer=(1, 0, 0)))
    append(log, make_batch([b"c"], producer=(1, 0, 2)))
    result = log.append(make_batch([b"a", b"b"], producer=(1, 0, 0)), 0)
    assert (result.error, result.is_duplicate) == (ErrorCode.NONE, True)
    assert (result.base_offset, result.last_offset, result.log_append_time_ms) == (1, 2, -1)
    assert log.log_end_offset == 4
    assert log.append(make_batch(producer=(1, 0, 9)), 0).error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


@pytest.mark.parametrize(
    ("config", "timestamps", "segments"),
    [
        (LogConfig(segment_bytes=200), [0, 0, 0], 3),
        (LogConfig(segment_ms=1000), [0, 1000, 1001], 2),
        (LogConfig(segment_ms=1000), [5000, 0, 6000], 1),
        (LogConfig(segment_index_bytes=32, index_interval_bytes=0), [0, 1, 2, 3, 4, 5, 6], 4),
        (LogConfig(), [0, 0, 0], 1),
    ],
)
def test_segments_are_rolled_by_kafkas_rules(
    host: Host, directory: str, config: LogConfig, timestamps: list[int], segments: int
) -> None:
    log = open_log(host, directory, config)
    for timestamp in timestamps:
        append(log, make_batch([b"x" * 50], timestamps=[NOW_MS + timestamp]))
    assert len(log.segments) == segments
    assert len(read_all(log)) == len(timestamps)


def test_a_removed_segment_stays_readable_for_who_has_a_slice(host: Host, directory: str) -> None:
    log = open_log(host, directory)
    first = make_batch([b"a"])
    append(log, first)
    log.roll()
    append(log, make_batch([b"b"]))
    piece = log.read(0, 1000, 2, whole_first_batch=True)
    delete_before(log, 1)
    removed = log.take_removed_files()
    assert [Path(path).name for path in removed] == [
        "00000000000000000000.log.deleted",
        "00000000000000000000.index.deleted",
        "00000000000000000000.timeindex.deleted",
    ]
    assert log.take_removed_files() == []
    for path in removed:
        os.unlink(path)
    assert isinstance(piece, FileSlice)
    assert piece.read() == bytes(first)
    assert log.read(0, 1000, 2, whole_first_batch=True) is ErrorCode.OFFSET_OUT_OF_RANGE
    assert len(read_all(log)) == 1


def test_few_segments_hold_a_descriptor(host: Host, directory: str) -> None:
    def fill_and_open_again() -> None:
        log = open_log(host, directory)
        host.disk.open_files.limit = 4
        before = len(open_descriptors())
        for _ in range(50):
            append(log, make_batch([b"a"]))
            log.roll()
        log.flush()
        assert len(read_all(log)) == 50
        assert len(open_descriptors()) <= before + 4
        again = open_log(host, directory, clean_shutdown=False, recovery_point_offset=50)
        for each in (log, again):
            assert each.max_timestamp_offset() is not None
            assert each.offset_for_timestamp(NOW_MS) is not None
            assert each.offset_for_timestamp(NOW_MS + 1) is None
            for segment in each.segments:
                segment.load_max_timestamp()
        assert len(open_descriptors()) <= before + 8

    call_alone(fill_and_open_again)


def test_the_log_start_cannot_pass_the_end(host: Host, directory: str) -> None:
    log = open_log(host, directory)
    append(log, make_batch([b"a"] * 3))
    with pytest.raises(ValueError, match="past the end"):
        delete_before(log, 4)
    delete_before(log, 3)
    delete_before(log, 1)
    assert (log.log_start_offset, log.log_end_offset) == (3, 3)
    assert append(log, make_batch([b"a"])) == 3


def test_truncation_keeps_whole_batches(host: Host, directory: str) -> None:
    log = open_log(host, directory, LogConfig(index_interval_bytes=0))
    for epoch in range(4):
        append(log, make_batch([b"a"] * 5, producer=(1, 0, 5 * epoch)), epoch)
        if epoch == 1:
            log.roll()
    log.truncate_to(20)
    assert log.log_end_offset == 20
    log.truncate_to(13)
    assert (log.log_end_offset, log.leader_epochs.latest_epoch) == (10, 1)
    assert log.producers.entries[1].next_sequence == 10
    assert append(log, make_batch([b"b"], producer=(1, 0, 10)), 7) == 10
    log.truncate_to(5)
    assert [segment.base_offset for segment in log.segments] == [0, 5]
    assert append(log, make_batch([b"b"], producer=(1, 0, 5)), 8) == 5
    assert len(read_all(log)) == 2


def test_a_log_can_start_again_anywhere(host: Host, directory: str) -> None:
    log = open_log(host, directory)
    append(log, make_batch([b"a"] * 5, producer=(1, 0, 0)), 2)
    log.truncate_fully_and_start_at(1000)
    assert (log.log_start_offset, log.log_end_offset, log.size_bytes) == (1000, 1000, 0)
    assert (len(log.producers.entries), log.leader_epochs.latest_epoch) == (0, -1)
    assert append(log, make_batch([b"b"])) == 1000
    log.truncate_to(10)
    assert (log.log_start_offset, log.log_end_offset) == (10, 10)


def test_flush_runs_beside_appends(host: Host, directory: str) -> None:
    """On a worker: whatever the end was when it began is durable when it returns."""
    log = open_log(host, directory, LogConfig(segment_bytes=2000))
    stop = threading.Event()
    problems: list[BaseException] = []

    def flush() -> None:
        try:
            while not stop.is_set():
                end_offset = log.log_end_offset
                log.flush()
                assert log.recovery_point_offset >= end_offset
                for segment in tuple(log.segments)[:-1]:
                    assert segment.load_max_timestamp() >= NOW_MS
                assert log.offset_for_timestamp(NOW_MS + 1) is None
        except BaseException as problem:
            problems.append(problem)

    worker = threading.Thread(target=flush)
    worker.start()
    for number in range(2000):
        append(log, make_batch([b"x" * (number % 200)]))
        read(log, max(0, number - 5))
    stop.set()
    worker.join()
    assert problems == []
    log.close()
    assert len(read_all(open_log(host, directory))) == 2000


def test_a_segment_removed_under_a_worker_is_no_error(
    host: Host, directory: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loop deletes records between a worker's look at the list of segments and its opening of the file."""
    log = open_log(host, directory)
    for _ in range(3):
        append(log, make_batch([b"a"]))
        log.roll()
    log.flush()
    open_file = host.disk.open

    def remove_and_open(path: str, *, create: bool = False) -> object:
        delete_before(log, 2)
        return open_file(path, create=create)

    monkeypatch.setattr(type(host.disk), "open", lambda _, path, *, create=False: remove_and_open(path, create=create))
    assert log.read(0, 100, 3, whole_first_batch=True) is ErrorCode.OFFSET_OUT_OF_RANGE
    log.log_start_offset = 0
    found = log.offset_for_timestamp(0)
    assert found is not None
    assert found.offset == 2
