"""What follows the exchange of a move: the new copy is made durable, and the old one is removed."""

import errno
from collections.abc import Iterable

import pytest

from odradek.host.host import Host
from odradek.log.log_directory import LogDirectory
from odradek.protocol.errors import ErrorCode
from odradek.replica.moves import old_copy_removal
from odradek.replica.moves.markers import MOVED_TO_FILE
from odradek.replica.moves.single_move import LogMove
from odradek.replica.partition import Partition
from tests.handlers.brokers import SimulatedBroker
from tests.handlers.requests import delete_topic
from tests.replica.held_workers import HeldWorkers
from tests.replica.moved_replicas import described, exchanged, move
from tests.replica.test_compaction import offsets
from tests.replica.test_housekeeping import pass_time


@pytest.fixture(autouse=True)
def nothing_fails_unseen() -> None:
    """Failures are the subject of these tests."""


def test_a_flush_of_the_old_log_does_not_count_for_the_new_one(broker: SimulatedBroker, name: str) -> None:
    exchanged(broker, name)
    (found,) = broker.services.partitions.moves
    assert found.old_log is not None
    found.old_log.flush()
    epochs = broker.partition(name).log.leader_epochs
    assert epochs.is_dirty
    pass_time(broker, 1)
    assert not epochs.is_dirty


def test_a_removal_that_hangs_does_not_delay_the_next_move(name: str) -> None:
    workers = HeldWorkers()
    broker = SimulatedBroker(workers, log_dirs="/one,/two")
    exchanged(broker, name)
    workers.held.add("remove_trees")
    assert move(broker, name, "/one") is ErrorCode.NONE
    pass_time(broker, 2)
    assert workers.waiting == ["remove_trees"]
    assert described(broker, name) == {"/one": (False, 0)}
    workers.release_all()
    broker.close()


def test_a_source_without_room_for_the_marker_loses_the_old_copy_at_once(
    broker: SimulatedBroker, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(found: LogMove, host: Host) -> None:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(old_copy_removal, "_mark_old_copy", refuse)
    exchanged(broker, name)
    pass_time(broker, 2)
    assert not broker.host.disk.exists(f"/one/{name}-0")
    broker.kill()
    assert (broker.partition(name).directory.path, len(offsets(broker, name))) == ("/two", 20)


def refuse_flushes(name: str, broker: SimulatedBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk of /two has no room for a file that each flush of the new copy writes."""
    disk = broker.simulation.disk
    replace_file = disk.replace_file

    def refuse(path: str, data: bytes) -> None:
        if path == f"/two/{name}-0/leader-epoch-checkpoint":
            raise OSError(errno.ENOSPC, "full")
        replace_file(path, data)

    monkeypatch.setattr(disk, "replace_file", refuse)


def test_a_refused_flush_is_tried_again(
    broker: SimulatedBroker, name: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    refuse_flushes(name, broker, monkeypatch)
    exchanged(broker, name)
    pass_time(broker, 10)
    assert broker.host.disk.exists(f"/one/{name}-0")
    assert not broker.host.disk.exists(f"/one/{name}-0/{MOVED_TO_FILE}")
    assert caplog.messages.count("a moved replica is not durable") == 1
    monkeypatch.undo()
    pass_time(broker, 70)
    assert not broker.host.disk.exists(f"/one/{name}-0")
    assert move(broker, name, "/one") is ErrorCode.NONE
    pass_time(broker, 2)
    assert described(broker, name) == {"/one": (False, 0)}


def test_a_broker_stops_while_a_flush_is_refused(
    broker: SimulatedBroker, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_flushes(name, broker, monkeypatch)
    exchanged(broker, name)
    pass_time(broker, 2)
    broker.restart()
    assert (broker.partition(name).directory.path, len(offsets(broker, name))) == ("/two", 20)


def test_a_topic_is_deleted_while_a_flush_is_refused(
    broker: SimulatedBroker, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_flushes(name, broker, monkeypatch)
    exchanged(broker, name)
    pass_time(broker, 2)
    delete_topic(broker, name)
    pass_time(broker, 2)
    left = [each for path in ("/one", "/two") for each in broker.host.disk.list_directory(path) if name in each]
    assert left == []


def test_a_checkpoint_that_is_refused_does_not_keep_the_old_copy(
    broker: SimulatedBroker, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    exchanged(broker, name)
    pass_time(broker, 2)
    followed = []

    async def follow(partition: Partition, source: LogDirectory) -> None:
        followed.append((partition.topic, source.path))

    async def refuse(directories: Iterable[LogDirectory] | None = None) -> None:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(broker.services.partitions.moves.old_copies, "after_move", follow)
    monkeypatch.setattr(broker.services.partitions, "checkpoint", refuse)
    pass_time(broker, 70)
    assert not broker.host.disk.exists(f"/one/{name}-0")
    assert followed == [(name, "/one")]
