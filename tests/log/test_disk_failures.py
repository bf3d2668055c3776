"""A disk that is full or broken: nothing is acknowledged that is not there, nothing is torn, and service goes on."""

import errno

import pytest

from odradek.log.log_config import LogConfig
from odradek.log.snapshot_files import SnapshotFiles
from tests.log.batches import append, make_batch, open_log, read_all
from tests.simulation.simulated_disk import SimulatedFile
from tests.simulation.simulated_host import Simulation

DIRECTORY = "/data/topic-0"


def test_a_full_disk_refuses_a_batch_without_a_trace(simulation: Simulation) -> None:
    log = open_log(simulation.host, DIRECTORY)
    append(log, make_batch(producer=(1, 0, 0)), 0)
    size = log.size_bytes
    simulation.disk.capacity_bytes = size + 70
    for _ in range(2):
        with pytest.raises(OSError, match="No space") as raised:
            log.append(make_batch([b"x" * 100], producer=(1, 0, 1)), 5)
        assert raised.value.errno == errno.ENOSPC
    assert (log.log_end_offset, log.size_bytes, log.leader_epochs.latest_epoch) == (1, size, 0)
    assert log.producers.entries[1].next_sequence == 1
    assert simulation.disk.file_size(f"{DIRECTORY}/{0:020d}.log") == size
    simulation.disk.capacity_bytes = None
    assert append(log, make_batch([b"x" * 100], producer=(1, 0, 1)), 5) == 1
    assert len(read_all(log)) == 2


def test_what_could_not_be_cut_off_is_cut_off_before_the_next_write(
    simulation: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log(simulation.host, DIRECTORY)
    append(log, make_batch())
    simulation.disk.capacity_bytes = log.size_bytes + 70
    file = log.segments[-1].file

    def fail(size_bytes: int) -> None:
        raise OSError(errno.EIO, "no")

    with monkeypatch.context() as patch:
        patch.setattr(file, "truncate", fail)
        with pytest.raises(OSError, match="No space"):
            log.append(make_batch([b"x" * 100]), 0)
    simulation.disk.capacity_bytes = None
    append(log, make_batch())
    assert simulation.disk.file_size(f"{DIRECTORY}/{0:020d}.log") == log.size_bytes


def test_a_roll_that_fails_leaves_the_log_as_it_was(simulation: Simulation) -> None:
    log = open_log(simulation.host, DIRECTORY, LogConfig(segment_bytes=150))
    append(log, make_batch(producer=(1, 0, 0)))
    simulation.disk.capacity_bytes = log.size_bytes
    for _ in range(3):
        with pytest.raises(OSError, match="No space"):
            log.append(make_batch([b"x" * 50], producer=(1, 0, 1)), 0)
    assert len(log.segments) == 1
    assert log.log_end_offset == 1
    simulation.disk.capacity_bytes = None
    append(log, make_batch([b"x" * 50], producer=(1, 0, 1)))
    assert len(log.segments) == 2
    log.close()
    assert len(read_all(open_log(simulation.host, DIRECTORY))) == 2


@pytest.mark.parametrize("is_clean", [True, False])
def test_a_roll_that_fails_leaves_no_segment_that_would_end_the_log(simulation: Simulation, is_clean: bool) -> None:
    config = LogConfig(segment_bytes=300)
    log = open_log(simulation.host, DIRECTORY, config)
    append(log, make_batch(producer=(1, 0, 0)))
    simulation.disk.capacity_bytes = log.size_bytes
    with pytest.raises(OSError, match="No space"):
        log.append(make_batch([b"x" * 200], producer=(1, 0, 1)), 0)
    simulation.disk.capacity_bytes = None
    append(log, make_batch([b"small"], producer=(1, 0, 1)))
    batches = read_all(log)
    assert len(batches) == 2
    if is_clean:
        log.close()
    else:
        simulation.disk.kill()
    again = open_log(simulation.host, DIRECTORY, config, clean_shutdown=is_clean)
    assert read_all(again) == batches
    assert again.producers.entries[1].next_sequence == 2


def test_a_segment_that_cannot_be_created_leaves_no_file(
    simulation: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log(simulation.host, DIRECTORY)
    append(log, make_batch())

    def fail(self: SimulatedFile, size_bytes: int) -> None:
        raise OSError(errno.EIO, "no")

    with monkeypatch.context() as patch:
        # The indexes and the snapshot are truncated too; only the new segment is to fail.
        patch.setattr(type(log.segments[0]), "write_indexes", lambda _: None)
        patch.setattr(SnapshotFiles, "write", lambda *_: None)
        patch.setattr(SimulatedFile, "truncate", fail)
        with pytest.raises(OSError, match="no"):
            log.roll()
    assert not simulation.disk.exists(f"{DIRECTORY}/{1:020d}.log")
    assert append(log, make_batch()) == 1


def test_after_a_failed_sync_nothing_is_trusted(simulation: Simulation) -> None:
    log = open_log(simulation.host, DIRECTORY)
    append(log, make_batch())
    log.flush()
    append(log, make_batch())
    log.roll()
    append(log, make_batch())
    simulation.disk.sync_error = OSError(errno.EIO, "no")
    with pytest.raises(OSError, match="no"):
        log.flush()
    simulation.disk.sync_error = None
    end_offset = log.log_end_offset
    for attempt in (lambda: log.append(make_batch(), 0), log.flush, log.close):
        with pytest.raises(OSError, match="failed to reach the disk"):
            attempt()
    assert (log.recovery_point_offset, log.log_end_offset) == (1, end_offset)
    assert log.has_rolled_segments_to_sync
    assert len(read_all(log)) == 3, "readers are still served"
    simulation.crash()
    assert len(read_all(open_log(simulation.host, DIRECTORY, clean_shutdown=False, recovery_point_offset=1))) >= 1


def test_a_sync_that_fails_while_closing_is_no_clean_close(simulation: Simulation) -> None:
    log = open_log(simulation.host, DIRECTORY)
    append(log, make_batch())
    simulation.disk.sync_error = OSError(errno.EIO, "no")
    with pytest.raises(OSError, match="no"):
        log.close()
    simulation.disk.sync_error = None
    with pytest.raises(OSError, match="failed to reach the disk"):
        log.close()


def test_a_disk_too_full_for_the_leader_epochs_is_tried_again(simulation: Simulation) -> None:
    log = open_log(simulation.host, DIRECTORY)
    append(log, make_batch())
    simulation.disk.capacity_bytes = log.size_bytes
    with pytest.raises(OSError, match="No space"):
        log.flush()
    simulation.disk.capacity_bytes = None
    append(log, make_batch())
    log.flush()
    assert log.recovery_point_offset == 2
