"""A damaged or missing index of aborted transactions is rebuilt when the log is loaded, also after a clean stop: its
records would be read as committed."""

import errno
import random
from collections.abc import Callable, Sequence

import pytest

from odradek.log import log_loading
from odradek.log.aborted_transactions import collect_aborted
from odradek.log.log_config import LogConfig
from odradek.log.partition_log import PartitionLog
from odradek.log.producer_replay import replay_segment
from odradek.log.segment import Segment
from odradek.log.snapshot_files import SnapshotFiles
from odradek.log.stored_segment import LOG_SUFFIX, file_path
from odradek.log.transaction_index import TRANSACTION_INDEX_SUFFIX, AbortedTransaction, checksum_path
from odradek.protocol.control_records import ControlRecordType, EndTransactionMarker
from tests.log.batches import EVERYTHING, append, open_log
from tests.log.compaction.compacted_logs import keyed_batch
from tests.simulation.simulated_disk import SimulatedDisk, SimulatedFile
from tests.simulation.simulated_host import Simulation

CONFIG = LogConfig(message_timestamp_after_max_ms=EVERYTHING)
DIRECTORY = "/data/topic-0"
ABORTED = [AbortedTransaction(0, 1, 1, 2), AbortedTransaction(2, 2, 3, 4), AbortedTransaction(4, 3, 5, 6)]


def write_aborted_transactions(log: PartitionLog) -> None:
    """Two in the first segment, and one in the active one."""
    for producer_id in (1, 2, 3):
        append(log, keyed_batch([(b"k", b"v")], producer=(producer_id, 0, 0), is_transactional=True))
        log.append_marker(EndTransactionMarker(producer_id, 0, ControlRecordType.ABORT, 0), 0, transaction_version=1)
        if producer_id == 2:
            log.roll()


def flip_a_bit_of_the_producer_id(index: bytes) -> bytes:
    return index[:9] + bytes([index[9] ^ 4]) + index[10:]


def cut_out_an_entry(index: bytes) -> bytes:
    return index[34:]


def lose_everything(index: bytes) -> bytes:
    return b""


@pytest.mark.parametrize("base_offset", [0, 4])
@pytest.mark.parametrize(
    "damage",
    [flip_a_bit_of_the_producer_id, cut_out_an_entry, lose_everything, None],
    ids=lambda each: each.__name__ if each else "remove",
)
def test_a_damaged_transaction_index_is_rebuilt_after_a_clean_stop(
    simulation: Simulation,
    base_offset: int,
    damage: Callable[[bytes], bytes] | None,
    caplog: pytest.LogCaptureFixture,
) -> None:
    log = open_log(simulation.host, DIRECTORY, CONFIG)
    write_aborted_transactions(log)
    log.close()
    path = file_path(DIRECTORY, base_offset, TRANSACTION_INDEX_SUFFIX)
    before = simulation.disk.read_file(path)
    if damage is None:
        simulation.disk.remove(path)
    else:
        simulation.disk.replace_file(path, damage(before))
    reopened = open_log(simulation.host, DIRECTORY, CONFIG)
    assert collect_aborted(reopened.segments, 0, 6) == ABORTED
    assert "log repaired" in caplog.text
    reopened.close()
    assert simulation.disk.read_file(path) == before


@pytest.mark.parametrize("base_offset", [0, 4])
@pytest.mark.parametrize(
    "damage",
    [flip_a_bit_of_the_producer_id, cut_out_an_entry, lose_everything, None],
    ids=lambda each: each.__name__ if each else "whole",
)
def test_a_transaction_index_without_a_checksum_is_compared_with_its_batches_once(
    simulation: Simulation,
    base_offset: int,
    damage: Callable[[bytes], bytes] | None,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Apache Kafka and older versions write such an index."""
    log = open_log(simulation.host, DIRECTORY, CONFIG)
    write_aborted_transactions(log)
    log.close()
    path = file_path(DIRECTORY, base_offset, TRANSACTION_INDEX_SUFFIX)
    before = simulation.disk.read_file(path), simulation.disk.read_file(checksum_path(path))
    simulation.disk.replace_file(path, damage(before[0]) if damage else before[0])
    simulation.disk.remove(checksum_path(path))
    reopened = open_log(simulation.host, DIRECTORY, CONFIG)
    assert collect_aborted(reopened.segments, 0, 6) == ABORTED
    assert (simulation.disk.read_file(path), simulation.disk.read_file(checksum_path(path))) == before
    assert ("log repaired" in caplog.text) == (damage is not None)
    reopened.close()


def test_only_segments_with_an_index_without_a_checksum_are_read(
    simulation: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log(simulation.host, DIRECTORY, CONFIG)
    for _ in range(2):
        append(log, keyed_batch([(b"k", b"v")]))
        log.roll()
    write_aborted_transactions(log)
    log.close()
    simulation.disk.remove(checksum_path(file_path(DIRECTORY, 2, TRANSACTION_INDEX_SUFFIX)))
    read: list[int] = []

    def replay(snapshots: SnapshotFiles, earlier: Sequence[Segment], segment: Segment) -> object:
        read.append(segment.base_offset)
        return replay_segment(snapshots, earlier, segment)

    monkeypatch.setattr(log_loading, "replay_segment", replay)
    for _ in range(2):
        open_log(simulation.host, DIRECTORY, CONFIG).close()
    assert read == [2], "once"


def test_an_index_without_a_checksum_stays_if_its_segment_is_damaged(simulation: Simulation) -> None:
    """Nothing else says what was aborted behind the damage, and a closed segment is not cut for its index."""
    log = open_log(simulation.host, DIRECTORY, CONFIG)
    write_aborted_transactions(log)
    log.close()
    path = file_path(DIRECTORY, 0, TRANSACTION_INDEX_SUFFIX)
    before = simulation.disk.read_file(path)
    simulation.disk.remove(checksum_path(path))
    segment = file_path(DIRECTORY, 0, LOG_SUFFIX)
    batches = bytearray(simulation.disk.read_file(segment))
    batches[16] = 9  # the format of the first batch
    simulation.disk.replace_file(segment, bytes(batches))
    reopened = open_log(simulation.host, DIRECTORY, CONFIG)
    assert collect_aborted(reopened.segments, 0, 6) == ABORTED
    reopened.close()
    assert (simulation.disk.read_file(path), simulation.disk.exists(checksum_path(path))) == (before, False)
    assert simulation.disk.read_file(segment) == batches


@pytest.fixture
def closed_log_without_checksum(simulation: Simulation) -> str:
    """The path of the missing checksum."""
    log = open_log(simulation.host, DIRECTORY, CONFIG)
    write_aborted_transactions(log)
    log.close()
    path = checksum_path(file_path(DIRECTORY, 0, TRANSACTION_INDEX_SUFFIX))
    simulation.disk.remove(path)
    simulation.disk.sync_directory(DIRECTORY)
    return path


@pytest.mark.parametrize("seed", range(5))
def test_a_checksum_that_a_load_has_added_survives_a_power_failure(
    simulation: Simulation, closed_log_without_checksum: str, seed: int
) -> None:
    """An empty one would not match, and the whole segment would be recovered."""
    open_log(simulation.host, DIRECTORY, CONFIG)
    before = simulation.disk.read_file(closed_log_without_checksum)
    simulation.disk.crash(random.Random(seed))
    assert simulation.disk.read_file(closed_log_without_checksum) == before


@pytest.mark.parametrize("reason", [errno.ENOSPC, errno.EROFS])
def test_a_disk_that_refuses_the_checksum_keeps_the_log_readable(
    simulation: Simulation, closed_log_without_checksum: str, reason: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **_options: object) -> None:
        raise OSError(reason, "no")

    with monkeypatch.context() as full:
        full.setattr(SimulatedFile, "write_at", refuse)
        full.setattr(SimulatedDisk, "replace_file", refuse)
        log = open_log(simulation.host, DIRECTORY, CONFIG)
        assert collect_aborted(log.segments, 0, 6) == ABORTED
        log.segments[0].open_indexes()
    log.close()
    open_log(simulation.host, DIRECTORY, CONFIG).close()
    assert simulation.disk.exists(closed_log_without_checksum)


def test_a_file_that_a_crash_left_beside_an_index_is_removed(
    simulation: Simulation, closed_log_without_checksum: str
) -> None:
    left = closed_log_without_checksum + ".tmp"
    simulation.disk.replace_file(left, b"")
    open_log(simulation.host, DIRECTORY, CONFIG).close()
    assert not simulation.disk.exists(left)
