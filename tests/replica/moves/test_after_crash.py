"""Which of two copies of a moved partition is used after a crash."""

import pytest

from odradek.protocol.errors import ErrorCode
from odradek.replica.moves.markers import MOVED_FROM_FILE, MOVED_TO_FILE
from tests.handlers.brokers import SimulatedBroker
from tests.handlers.requests import create_topic, delete_records, produce
from tests.replica.held_workers import HeldWorkers
from tests.replica.moved_replicas import contents, die, exchanged, follow_another_leader, start, step_until
from tests.replica.test_compaction import offsets
from tests.replica.test_housekeeping import pass_time


@pytest.fixture(autouse=True)
def nothing_fails_unseen() -> None:
    """Failures are the subject of these tests."""


def test_the_old_copy_is_not_used_when_the_target_has_failed(broker: SimulatedBroker, name: str) -> None:
    exchanged(broker, name)
    pass_time(broker, 2)
    assert produce(broker, name).base_offset == 20
    die(broker)
    broker.simulation.disk.broken.add("/two")
    start(broker)
    assert produce(broker, name).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    die(broker)
    broker.simulation.disk.broken.clear()
    start(broker)
    assert broker.partition(name).directory.path == "/two"
    assert len(offsets(broker, name)) == 21


@pytest.mark.parametrize("seconds", [0, 2])
def test_the_old_copy_does_not_replace_a_truncated_one(broker: SimulatedBroker, name: str, seconds: int) -> None:
    exchanged(broker, name)
    if seconds:
        pass_time(broker, seconds)
    follow_another_leader(broker, name, 5, 15)
    expected = contents(broker.partition(name))
    broker.kill()
    assert broker.partition(name).directory.path == "/two"
    assert contents(broker.partition(name)) == expected


def test_a_marker_stays_while_the_directory_that_it_names_cannot_be_read(name: str) -> None:
    broker = SimulatedBroker(log_dirs="/two,/one")  # the first one must be usable at a start
    create_topic(broker, f"{name}-other")
    exchanged(broker, name)
    die(broker)
    marker = f"/two/{name}-0/{MOVED_FROM_FILE}"
    assert broker.host.disk.exists(marker)
    broker.simulation.disk.broken.add("/one")
    start(broker)
    assert produce(broker, name).base_offset == 20
    assert broker.host.disk.exists(marker)
    die(broker)
    broker.simulation.disk.broken.clear()
    start(broker)
    assert (broker.partition(name).directory.path, len(offsets(broker, name))) == ("/two", 21)
    assert not broker.host.disk.exists(marker)
    broker.close()


def test_an_empty_last_segment_does_not_hide_lost_records(broker: SimulatedBroker, name: str) -> None:
    exchanged(broker, name)
    die(broker)
    file = broker.host.disk.open(f"/two/{name}-0/{0:020}.log")
    assert broker.host.disk.exists(f"/two/{name}-0/{20:020}.log")
    file.truncate(file.size() - 10)
    start(broker)
    assert offsets(broker, name) == [*range(20)]


def test_an_old_copy_is_kept_if_the_new_one_cannot_be_used(broker: SimulatedBroker, name: str) -> None:
    exchanged(broker, name)
    step_until(broker, lambda: broker.host.disk.exists(f"/one/{name}-0/{MOVED_TO_FILE}"))
    broker.host.disk.replace_file(f"/one/{name}-0/{MOVED_TO_FILE}", b"a directory that is gone")
    die(broker)
    start(broker)
    assert broker.partition(name).directory.path == "/two"
    assert [each for each in broker.host.disk.list_directory("/one") if each.endswith("-stray")]


def test_a_moved_copy_whose_records_were_deleted_is_kept(name: str) -> None:
    """The first failure leaves the old copy without a marker, the second one keeps its log directory from being read
    at the next start."""
    broker = SimulatedBroker(log_dirs="/two,/one")  # the first one must be usable at a start
    create_topic(broker, f"{name}-other")
    exchanged(broker, name)
    die(broker)
    broker.simulation.disk.broken.add("/one")
    start(broker)
    assert produce(broker, name).base_offset == 20
    broker.partition(name).log.roll()
    delete_records(broker, name, 21)
    die(broker)
    broker.simulation.disk.broken.clear()
    start(broker)
    partition = broker.partition(name)
    assert (partition.directory.path, partition.log.log_start_offset) == ("/two", 21)
    assert produce(broker, name).base_offset == 21
    broker.close()


def test_records_that_are_deleted_before_the_new_copy_is_durable_stay_deleted(name: str) -> None:
    workers = HeldWorkers()
    broker = SimulatedBroker(workers, log_dirs="/one,/two")
    exchanged(broker, name)
    workers.held.add("flush")
    delete_records(broker, name, 20)
    assert not broker.host.disk.exists(f"/one/{name}-0/{MOVED_TO_FILE}")
    workers.release_all()
    broker.kill()
    partition = broker.partition(name)
    assert (partition.directory.path, partition.log.log_start_offset) == ("/two", 20)
    broker.close()


def test_a_complete_copy_is_kept_whatever_the_old_one_has(broker: SimulatedBroker, name: str) -> None:
    exchanged(broker, name)
    pass_time(broker, 2)
    broker.host.disk.remove(f"/one/{name}-0/{MOVED_TO_FILE}")
    die(broker)
    file = broker.host.disk.open(f"/two/{name}-0/{0:020}.log")
    file.truncate(file.size() // 2)
    start(broker)
    assert broker.partition(name).directory.path == "/two"
    assert not broker.host.disk.exists(f"/one/{name}-0")


def test_batches_after_lost_ones_do_not_hide_them(name: str) -> None:
    """A power loss took the end of a segment of the new copy, and left a record of the next segment."""
    workers = HeldWorkers()
    broker = SimulatedBroker(workers, log_dirs="/one,/two")
    exchanged(broker, name)
    workers.held.add("flush")
    assert produce(broker, name).base_offset == 20
    assert not broker.host.disk.exists(f"/one/{name}-0/{MOVED_TO_FILE}")
    die(broker)
    file = broker.host.disk.open(f"/two/{name}-0/{0:020}.log")
    file.truncate(file.size() - 10)
    workers.release_all()
    start(broker)
    assert offsets(broker, name) == [*range(20)]
    broker.close()
