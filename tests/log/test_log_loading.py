"""Opening what the last run left: closed, killed, torn, or with files missing."""

import os
import struct
from pathlib import Path

import pytest

from odradek.host.host import Host
from odradek.host.slices import FileSlice
from odradek.log.log_config import LogConfig
from odradek.log.partition_log import PartitionLog
from odradek.log.stored_segment import TIME_INDEX_SUFFIX
from odradek.protocol.batch import assign_offset, read_batch_header
from odradek.protocol.errors import ErrorCode
from tests.log.batches import EVERYTHING, NOW_MS, append, delete_before, make_batch, open_log, read_all
from tests.simulation.simulated_host import Simulation

CONFIG = LogConfig(index_interval_bytes=200, segment_bytes=3000)
LOG = "00000000000000000000.log"
INDEX = "00000000000000000000.index"
TIME_INDEX = "00000000000000000000.timeindex"


def fill(log: PartitionLog, count: int = 60) -> list[bytes]:
    """With one idempotent producer, a growing epoch and growing timestamps."""
    batches = []
    for number in range(count):
        batch = make_batch([b"x" * number], timestamps=[NOW_MS + number], producer=(9, 0, number))
        append(log, batch, number // 20)
        batches.append(bytes(batch))
    return batches


def index_files(directory: str) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(Path(directory).glob("*index"))}


def test_a_closed_log_opens_as_it_was(host: Host, directory: str) -> None:
    log = open_log(host, directory, CONFIG)
    batches = fill(log)
    log.close()
    files = index_files(directory)
    again = open_log(host, directory, CONFIG)
    assert read_all(again) == batches
    assert again.recovery_point_offset == again.log_end_offset == 60
    assert again.leader_epochs.entries == ((0, 0), (1, 20), (2, 40))
    assert again.append(make_batch([b"x" * 59], producer=(9, 0, 59)), 2).base_offset == 59
    assert again.append(make_batch(producer=(9, 0, 61)), 2).error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    append(again, make_batch(producer=(9, 0, 60)))
    again.close()
    assert all(index_files(directory)[name].startswith(data) for name, data in files.items())


def test_a_log_that_was_only_opened_is_closed_without_a_write(simulation: Simulation) -> None:
    log = open_log(simulation.host, "/data/topic-0", CONFIG)
    fill(log)
    log.close()
    again = open_log(simulation.host, "/data/topic-0", CONFIG)
    simulation.disk.sync_error = OSError("nothing should be synced")
    again.flush()
    again.close()


def test_rebuilt_indexes_are_those_that_were_written(host: Host, directory: str) -> None:
    log = open_log(host, directory, CONFIG)
    batches = fill(log)
    log.close()
    files = index_files(directory)
    assert len(files) > 2
    for name in files:
        os.unlink(Path(directory, name))
    again = open_log(host, directory, CONFIG)
    assert read_all(again) == batches
    assert index_files(directory) == files
    killed = open_log(host, directory, CONFIG, clean_shutdown=False)
    assert read_all(killed) == batches
    assert index_files(directory) == files


def test_index_entries_are_the_last_offset_and_the_position_of_a_batch(host: Host, directory: str) -> None:
    log = open_log(host, directory, LogConfig(index_interval_bytes=200))
    fill(log, 10)
    log.close()
    segment = Path(directory, LOG).read_bytes()
    expected, times, position, since_entry = b"", b"", 0, 0
    while position < len(segment):
        header = read_batch_header(segment, position)
        if since_entry > 200:
            expected += struct.pack(">ii", header.last_offset, position)
            times += struct.pack(">qi", header.max_timestamp, header.last_offset)
            since_entry = 0
        position += header.size_bytes
        since_entry += header.size_bytes
    assert Path(directory, INDEX).read_bytes() == expected
    last = struct.pack(">qi", NOW_MS + 9, 9)
    assert Path(directory, TIME_INDEX).read_bytes() == times.removesuffix(last) + last


@pytest.mark.parametrize("damage", ["short", "zeros", "rotten", "empty header"])
def test_a_torn_tail_is_cut_off(host: Host, directory: str, damage: str) -> None:
    log = open_log(host, directory)
    batches = fill(log, 10)
    path = Path(directory, LOG)
    if damage == "short":
        os.truncate(path, log.size_bytes - 5)
    elif damage == "zeros":
        os.truncate(path, log.size_bytes + 4096)
        batches.append(b"")
    elif damage == "rotten":
        data = bytearray(path.read_bytes())
        data[-1] ^= 0x40
        path.write_bytes(data)
    else:
        os.truncate(path, log.size_bytes - len(batches[-1]) + 30)
    again = open_log(host, directory, clean_shutdown=False)
    assert read_all(again) == batches[:-1]
    assert again.log_end_offset == len(batches) - 1
    assert again.producers.entries[9].next_sequence == len(batches) - 1
    assert path.stat().st_size == again.size_bytes == sum(map(len, batches[:-1]))
    again.truncate_to(5)
    append(again, make_batch(producer=(9, 0, 5)))


def test_a_length_that_is_nonsense_does_not_fill_the_memory(host: Host, directory: str) -> None:
    log = open_log(host, directory)
    batches = fill(log, 3)
    path = Path(directory, LOG)
    with path.open("r+b") as file:
        file.seek(log.size_bytes - len(batches[-1]) + 8)
        file.write(struct.pack(">i", 0x7FFFFFF0))
        file.truncate(0x7FFFFFFF)  # sparse
    again = open_log(host, directory, clean_shutdown=False)
    assert read_all(again) == batches[:-1]


def test_segments_after_a_torn_one_are_set_aside(host: Host, directory: str) -> None:
    log = open_log(host, directory, CONFIG)
    batches = fill(log)
    log.flush()
    base_offsets = [segment.base_offset for segment in log.segments]
    assert len(base_offsets) > 2
    os.truncate(Path(directory, f"{base_offsets[1]:020d}.log"), log.segments[1].size_bytes - 1)
    again = open_log(host, directory, CONFIG, clean_shutdown=False)
    assert [segment.base_offset for segment in again.segments] == base_offsets[:2]
    assert read_all(again) == batches[: base_offsets[2] - 1]
    aside = {int(name[:20]): Path(directory, name) for name in os.listdir(directory) if name.endswith(".log.aside")}
    assert sorted(aside) == base_offsets[2:]
    assert b"".join(aside[each].read_bytes() for each in sorted(aside)) == b"".join(batches[base_offsets[2] :])
    assert again.aside_names == sorted(path.name for path in aside.values())
    names = {name for name in os.listdir(directory) if name[0] == "0"} - {path.name for path in aside.values()}
    assert {int(name[:20]) for name in names} == set(base_offsets[:2])
    assert again.leader_epochs.latest_epoch == (again.log_end_offset - 1) // 20


def test_a_lost_tail_that_ends_with_a_whole_batch_ends_the_log(host: Host, directory: str) -> None:
    log = open_log(host, directory, CONFIG)
    batches = fill(log)
    base_offsets = [segment.base_offset for segment in log.segments]
    last_of_first = batches[base_offsets[1] - 1]
    os.truncate(Path(directory, LOG), log.segments[0].size_bytes - len(last_of_first))
    again = open_log(host, directory, CONFIG, clean_shutdown=False)
    assert read_all(again) == batches[: base_offsets[1] - 1]


def test_compaction_leaves_holes_that_are_no_loss(host: Host, directory: str) -> None:
    log = open_log(host, directory, CONFIG)
    batches = fill(log)
    base_offsets = [segment.base_offset for segment in log.segments]
    os.truncate(Path(directory, LOG), log.segments[0].size_bytes - len(batches[base_offsets[1] - 1]))
    config = LogConfig(index_interval_bytes=200, segment_bytes=3000, is_compacted=True)
    again = open_log(host, directory, config, clean_shutdown=False)
    del batches[base_offsets[1] - 1]
    assert read_all(again) == batches


@pytest.mark.parametrize("is_compacted", [True, False])
def test_a_log_that_was_truncated_within_a_hole_keeps_what_came_after(
    host: Host, directory: str, is_compacted: bool
) -> None:
    """A compaction may leave a hole between two batches, and the topic's policy may change after it."""
    log = open_log(host, directory)
    for offset in (*range(91), *range(100, 110)):
        stored = bytearray(make_batch())
        assign_offset(stored, 0, offset, 1)
        assert log.append_as_follower(memoryview(stored)).error is ErrorCode.NONE
    log.truncate_to(95)
    assert log.recovery_point_offset == 95
    for _ in range(5):
        append(log, make_batch(), 2)
    config = LogConfig(is_compacted=is_compacted)
    again = open_log(host, directory, config, clean_shutdown=False, recovery_point_offset=95)
    assert again.log_end_offset == 100
    assert len(read_all(again)) == 91 + 5


def test_a_hole_that_reaches_past_the_recovery_point_is_a_loss(host: Host, directory: str) -> None:
    log = open_log(host, directory, CONFIG)
    batches = fill(log)
    base_offsets = [segment.base_offset for segment in log.segments]
    os.truncate(Path(directory, LOG), log.segments[0].size_bytes - len(batches[base_offsets[1] - 1]))
    point = base_offsets[1] - 1
    again = open_log(host, directory, CONFIG, clean_shutdown=False, recovery_point_offset=point)
    assert again.log_end_offset == base_offsets[1] - 1


def test_nothing_before_the_recovery_point_is_scanned(host: Host, directory: str) -> None:
    log = open_log(host, directory, CONFIG)
    fill(log)
    log.flush()
    recovery_point = log.recovery_point_offset
    path = Path(directory, LOG)
    data = bytearray(path.read_bytes())
    data[70] ^= 1  # rot that a scan would cut off
    path.write_bytes(data)
    again = open_log(host, directory, CONFIG, clean_shutdown=False, recovery_point_offset=recovery_point)
    assert again.log_end_offset == log.log_end_offset, "it is not cut off"
    assert again.read(0, 100, EVERYTHING, whole_first_batch=True) is ErrorCode.CORRUPT_MESSAGE, "nor is it served"
    whole = again.read(again.segments[1].base_offset, 100, EVERYTHING, whole_first_batch=True)
    assert isinstance(whole, FileSlice)


def test_producers_come_from_the_newest_whole_snapshot(host: Host, directory: str) -> None:
    log = open_log(host, directory, CONFIG)
    fill(log)
    log.close()
    newest = Path(directory, f"{60:020d}.snapshot")
    newest.write_bytes(newest.read_bytes()[:-3])
    again = open_log(host, directory, CONFIG)
    assert again.producers.entries[9].next_sequence == 60
    assert not newest.exists()


def test_snapshots_of_no_segment_are_removed(host: Host, directory: str) -> None:
    log = open_log(host, directory, CONFIG)
    fill(log, 3)
    log.close()
    log = open_log(host, directory, CONFIG)
    append(log, make_batch(producer=(9, 0, 3)))
    log.close()
    open_log(host, directory, CONFIG)
    assert [name for name in os.listdir(directory) if name.endswith(".snapshot")] == [f"{4:020d}.snapshot"]


def test_epochs_that_cannot_be_read_are_found_in_the_batches(host: Host, directory: str) -> None:
    log = open_log(host, directory, CONFIG)
    fill(log)
    log.close()
    Path(directory, "leader-epoch-checkpoint").write_bytes(b"0\n7\n")
    assert open_log(host, directory, CONFIG).leader_epochs.entries == ((0, 0), (1, 20), (2, 40))


def test_epochs_that_are_gone_are_found_in_the_batches(host: Host, directory: str) -> None:
    log = open_log(host, directory, CONFIG)
    fill(log)
    log.close()
    for clean_shutdown in (True, False):
        Path(directory, "leader-epoch-checkpoint").unlink()
        again = open_log(
            host, directory, CONFIG, clean_shutdown=clean_shutdown, recovery_point_offset=log.log_end_offset
        )
        assert again.leader_epochs.entries == ((0, 0), (1, 20), (2, 40))
        again.flush()


def test_a_rebuilt_index_outlives_a_kill_and_a_power_failure(simulation: Simulation) -> None:
    log = open_log(simulation.host, "/data/t-0", CONFIG)
    fill(log)
    log.close()
    simulation.disk.sync_directory("/data")
    end_offset, path = log.log_end_offset, log.segments[0].path(TIME_INDEX_SUFFIX)
    size_bytes = simulation.disk.file_size(path)
    simulation.disk.remove(path)
    for end in (simulation.disk.kill, simulation.disk.kill, simulation.crash):
        open_log(simulation.host, "/data/t-0", CONFIG, clean_shutdown=False, recovery_point_offset=end_offset)
        end()
    assert simulation.disk.file_size(path) == size_bytes


def test_leftovers_are_removed(host: Host, directory: str) -> None:
    log = open_log(host, directory)
    fill(log, 3)
    log.close()
    kept = set(os.listdir(directory))
    for name in (
        "00000000000000000007.log.deleted",
        "00000000000000000007.log.cleaned",
        "00000000000000000009.index",
        "00000000000000000009.timeindex",
        "leader-epoch-checkpoint.tmp",
    ):
        Path(directory, name).write_bytes(b"?")
    open_log(host, directory)
    assert set(os.listdir(directory)) == kept


def test_a_start_offset_past_the_end_starts_the_log_there(host: Host, directory: str) -> None:
    log = open_log(host, directory)
    fill(log, 10)
    again = open_log(host, directory, clean_shutdown=False, log_start_offset=25)
    assert (again.log_start_offset, again.log_end_offset) == (25, 25)
    assert append(again, make_batch()) == 25
    again.close()
    assert open_log(host, directory, log_start_offset=25).log_end_offset == 26


def test_deleted_records_stay_deleted(host: Host, directory: str) -> None:
    log = open_log(host, directory, CONFIG)
    fill(log)
    delete_before(log, 45)
    log.close()
    again = open_log(host, directory, CONFIG, log_start_offset=45)
    assert again.log_start_offset == 45
    assert again.leader_epochs.entries == ((2, 45),)
    assert again.read(44, 1, 60, whole_first_batch=True) is ErrorCode.OFFSET_OUT_OF_RANGE


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[dict[str, object]]:
    fields = [vars(record)["odradek_fields"] for record in caplog.records]
    caplog.clear()
    return fields


def test_a_repair_is_reported_once(host: Host, directory: str, caplog: pytest.LogCaptureFixture) -> None:
    log = open_log(host, directory, CONFIG)
    fill(log)
    log.flush()
    base_offsets = [segment.base_offset for segment in log.segments]
    os.truncate(Path(directory, f"{base_offsets[1]:020d}.log"), log.segments[1].size_bytes - 1)
    Path(directory, f"{base_offsets[1]:020d}.snapshot").write_bytes(b"torn")
    again = open_log(host, directory, CONFIG, clean_shutdown=False, recovery_point_offset=base_offsets[1] + 1)
    (warning,) = warnings_of(caplog)
    cut_bytes = warning.pop("cut_bytes")
    assert isinstance(cut_bytes, int)
    assert cut_bytes > 60
    assert warning == {
        "directory": directory,
        "log_end_offset": again.log_end_offset,
        "discarded_segments": len(base_offsets) - 2,
        "set_aside_segments": len(base_offsets) - 2,
        "rebuilt_indexes": 0,
        "unreadable_snapshots": 1,
        "unreadable_leader_epochs": False,
    }
    again.close()
    for name in index_files(directory):
        os.unlink(Path(directory, name))
    open_log(host, directory, CONFIG)
    (warning,) = warnings_of(caplog)
    assert (warning["cut_bytes"], warning["rebuilt_indexes"]) == (0, 2)


def test_a_recovery_that_finds_nothing_wrong_is_silent(
    host: Host, directory: str, caplog: pytest.LogCaptureFixture
) -> None:
    open_log(host, directory, CONFIG).close()
    log = open_log(host, directory, CONFIG)
    fill(log)
    open_log(host, directory, CONFIG, clean_shutdown=False).close()
    open_log(host, directory, CONFIG)
    assert warnings_of(caplog) == []


def test_a_log_that_starts_empty_after_a_crash_has_no_sequences(host: Host, directory: str) -> None:
    """Records below 40 were deleted, and the crash took the end of the log back to 20: what a snapshot at 10 knows of
    the producer is older than what its next batch says."""
    log = open_log(host, directory, CONFIG)
    fill(log, 10)
    log.roll()
    log.flush()
    fill_on = [make_batch(producer=(9, 0, number)) for number in range(10, 20)]
    for batch in fill_on:
        append(log, batch)
    again = PartitionLog.open(directory, CONFIG, host, clean_shutdown=False, log_start_offset=40)
    assert (again.log_start_offset, again.log_end_offset) == (40, 40)
    assert again.append(make_batch(producer=(9, 0, 40)), 0).base_offset == 40


@pytest.mark.parametrize("number", [1, -1])
def test_a_segment_that_is_missing_after_a_clean_stop_is_reported(
    host: Host, directory: str, caplog: pytest.LogCaptureFixture, number: int
) -> None:
    """The newest one too, without its indexes: its offsets would be assigned again in silence."""
    log = open_log(host, directory, CONFIG)
    fill(log)
    base_offset = log.segments[number].base_offset
    log.close()
    for path in Path(directory).glob(f"{base_offset:020d}.*"):
        if number == -1 or path.suffix == ".log":
            path.unlink()
    open_log(host, directory, CONFIG, recovery_point_offset=60)
    reported = "durable records at the end of a log are lost" if number == -1 else "an index without its segment"
    assert reported in caplog.text
