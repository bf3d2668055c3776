"""Which snapshots there are, which one counts, and that one removed meanwhile does not spoil a sync."""

import pytest

from odradek.host.disk import File
from odradek.log.producer_state import ProducerState
from odradek.log.snapshot_files import SnapshotFiles
from odradek.protocol.batch import read_batch_header
from tests.log.batches import NOW_MS, make_batch
from tests.simulation.simulated_host import Simulation


@pytest.fixture
def snapshots(simulation: Simulation) -> SnapshotFiles:
    snapshots = SnapshotFiles(simulation.disk, "/data", [])
    producers = ProducerState()
    for offset in (1, 2, 3):
        header = read_batch_header(make_batch(producer=(7, 0, offset - 1)))
        producers.update(header, offset - 1, NOW_MS)
        snapshots.write(producers, offset)
    return snapshots


def test_the_newest_whole_one_before_the_end_counts(simulation: Simulation, snapshots: SnapshotFiles) -> None:
    producers = ProducerState()
    assert snapshots.load_newest(producers, 2)
    assert (producers.end_offset, producers.entries[7].next_sequence) == (2, 2)
    simulation.disk.open(snapshots.path(3)).truncate(5)
    assert snapshots.load_newest(producers, 3)
    assert (producers.end_offset, snapshots.offsets, snapshots.unreadable_count) == (2, [1, 2], 1)
    snapshots.remove([1, 2])
    assert not snapshots.load_newest(producers, 3)
    assert (producers.end_offset, len(producers.entries)) == (0, 0)


def test_one_of_another_log_is_passed_over(simulation: Simulation, snapshots: SnapshotFiles) -> None:
    """Its open transactions would begin at wrong offsets, and readers would get aborted records."""
    later = simulation.disk.read_file(snapshots.path(3))
    simulation.disk.open(snapshots.path(2)).write_at(later, 0)
    producers = ProducerState()
    assert snapshots.load_newest(producers, 2)
    assert (producers.end_offset, snapshots.offsets, snapshots.unreadable_count) == (1, [1, 3], 1)


def test_those_of_no_segment_and_past_the_end_are_removed(simulation: Simulation, snapshots: SnapshotFiles) -> None:
    snapshots.remove_stray([1])
    assert snapshots.offsets == [1, 3]
    snapshots.remove_after(1)
    assert snapshots.offsets == [1]
    assert simulation.disk.list_directory("/data") == [snapshots.path(1).rpartition("/")[2]]


def test_each_is_synced_once(snapshots: SnapshotFiles) -> None:
    synced: list[File] = []
    snapshots.remove([2])
    snapshots.sync(synced.append)
    assert len(synced) == 2
    snapshots.sync(synced.append)
    assert len(synced) == 2


def test_one_that_is_removed_while_it_is_opened_is_passed_over(
    simulation: Simulation, snapshots: SnapshotFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[File] = []
    open_file = simulation.disk.open

    def remove_and_open(path: str, *, create: bool = False) -> File:
        snapshots.remove([2])
        return open_file(path, create=create)

    monkeypatch.setattr(simulation.disk, "open", remove_and_open)
    snapshots.offsets.remove(1)  # so that 2 is the first to be opened
    snapshots.sync(synced.append)
    assert len(synced) == 1


def test_one_that_is_missing_and_not_removed_is_an_error(simulation: Simulation, snapshots: SnapshotFiles) -> None:
    simulation.disk.remove(snapshots.path(2))
    with pytest.raises(FileNotFoundError):
        snapshots.sync(lambda _: None)
