"""What a flush does when the log changes under it, and what it never does twice."""

import errno

import pytest

from odradek.log.leader_epochs import LeaderEpochs
from odradek.log.segment import Segment
from odradek.log.snapshot_files import SnapshotFiles
from odradek.log.unsynced_files import UnsyncedFiles
from tests.log.batches import append, delete_before, make_batch, open_log, read_all
from tests.simulation.simulated_disk import SimulatedFile
from tests.simulation.simulated_host import Simulation

DIRECTORY = "/data/topic-0"


def make_segment(simulation: Simulation, base_offset: int) -> Segment:
    segment = Segment(simulation.disk, "/data", base_offset)
    segment.create()
    segment.append(make_batch(), base_offset, 0, 4096)
    segment.write_indexes()
    return segment


def make_unsynced(simulation: Simulation, rolled: list[Segment]) -> UnsyncedFiles:
    return UnsyncedFiles(simulation.disk, "/data", SnapshotFiles(simulation.disk, "/data", []), rolled, is_new=True)


def test_what_was_synced_is_forgotten_and_durable(simulation: Simulation) -> None:
    rolled, active = make_segment(simulation, 0), make_segment(simulation, 1)
    unsynced = make_unsynced(simulation, [rolled])
    unsynced.sync(active, LeaderEpochs())
    assert (unsynced.rolled_segments, unsynced.has_new_names, unsynced.failure) == ([], False, None)
    simulation.crash()
    for segment in (rolled, active):
        assert simulation.disk.file_size(segment.path(".log")) == segment.size_bytes


@pytest.mark.parametrize("fails", ["file", "directory"])
def test_a_failed_sync_is_remembered(simulation: Simulation, monkeypatch: pytest.MonkeyPatch, fails: str) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.EIO, "no")

    active = make_segment(simulation, 0)
    unsynced = make_unsynced(simulation, [])
    unsynced.check()
    target: object = SimulatedFile if fails == "file" else simulation.disk
    monkeypatch.setattr(target, "sync" if fails == "file" else "sync_directory", fail)
    with pytest.raises(OSError, match="no"):
        unsynced.sync(active, LeaderEpochs())
    with pytest.raises(OSError, match=r"/data failed to reach the disk before \(no\)"):
        unsynced.check()


def test_a_file_that_cannot_be_opened_is_tried_again(simulation: Simulation, monkeypatch: pytest.MonkeyPatch) -> None:
    """Too few descriptors say nothing about what is on the disk."""
    active = make_segment(simulation, 0)
    unsynced = make_unsynced(simulation, [])
    active.release()

    def fail(path: str, *, create: bool = False) -> None:
        raise OSError(errno.EMFILE, "too many open files")

    with monkeypatch.context() as patch:
        patch.setattr(simulation.disk, "open", fail)
        with pytest.raises(OSError, match="too many"):
            unsynced.sync(active, LeaderEpochs())
    unsynced.check()
    unsynced.sync(active, LeaderEpochs())


def test_records_deleted_during_a_flush_do_not_make_it_fail(
    simulation: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loop deletes records, of the segment that was active too, while a worker syncs the first file."""
    log = open_log(simulation.host, DIRECTORY)
    for _ in range(3):
        append(log, make_batch())
        log.roll()
    append(log, make_batch())
    sync = SimulatedFile.sync
    is_first = True

    def delete_and_sync(file: SimulatedFile) -> None:
        nonlocal is_first
        if is_first:
            is_first = False
            log.roll()
            append(log, make_batch())
            delete_before(log, 4)
        sync(file)

    monkeypatch.setattr(SimulatedFile, "sync", delete_and_sync)
    log.flush()
    assert log.recovery_point_offset == 4
    assert not log.has_rolled_segments_to_sync
    assert len(read_all(log)) == 1


def test_a_segment_that_is_missing_and_not_removed_is_an_error(simulation: Simulation) -> None:
    active = make_segment(simulation, 0)
    active.release()
    simulation.disk.remove(active.path(".log"))
    with pytest.raises(FileNotFoundError):
        make_unsynced(simulation, []).sync(active, LeaderEpochs())
