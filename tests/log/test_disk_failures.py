"""A disk that is full or broken: nothing is acknowledged that is not there, nothing is torn, and service goes on."""

import errno

import pytest

from odradek.log.log_config import LogConfig
from odradek.protocol.errors import ErrorCode
from tests.log.batches import append, make_batch, open_log, read_all
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


def test_a_failed_sync_does_not_move_the_recovery_point(simulation: Simulation) -> None:
    log = open_log(simulation.host, DIRECTORY)
    append(log, make_batch())
    log.roll()
    append(log, make_batch())
    simulation.disk.sync_error = OSError(errno.EIO, "no")
    with pytest.raises(OSError, match="no"):
        log.flush()
    assert log.recovery_point_offset == 0
    assert log.has_rolled_segments_to_sync
    assert log.append(make_batch(), 0).error is ErrorCode.NONE
    simulation.disk.sync_error = None
    log.flush()
    assert log.recovery_point_offset == 3
    assert not log.has_rolled_segments_to_sync
