"""Several log directories, and what happens when the disk under one of them goes."""

import errno
from collections.abc import Iterator

import pytest

from odradek.log.log_directory import LogDirectoryError
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from odradek.protocol.messages.metadata import MetadataRequest, MetadataResponse
from tests.handlers.brokers import SimulatedBroker
from tests.handlers.requests import (
    begin_fetch,
    create_topic,
    delete_records,
    delete_topic,
    fetch,
    fetch_request,
    list_offset,
    partitions_of,
    produce,
    wanted,
)
from tests.replica.test_compaction import BACKOFF_SECONDS, fill, offsets, put
from tests.replica.test_housekeeping import pass_time

STORAGE_ERROR = ErrorCode.KAFKA_STORAGE_ERROR


@pytest.fixture(autouse=True)
def nothing_fails_unseen() -> None:
    """Here failures are what it is about."""


@pytest.fixture
def broker() -> Iterator[SimulatedBroker]:
    broker = SimulatedBroker(log_dirs="/one,/two")
    yield broker
    broker.close()


def paths(broker: SimulatedBroker, name: str, count: int) -> list[str]:
    return [broker.partition(name, index).directory.path for index in range(count)]


def outcomes(broker: SimulatedBroker, name: str, count: int) -> list[int]:
    return [produce(broker, name, partition=index).error_code for index in range(count)]


def leaders(broker: SimulatedBroker, name: str) -> list[tuple[int, int, list[int]]]:
    answer = broker.call(MetadataRequest(topics=None), MetadataResponse, 12)
    partitions = next(topic for topic in answer.topics if topic.name == name).partitions
    return [(each.error_code, each.leader_id, each.offline_replicas) for each in partitions]


def test_a_failed_sync_takes_its_whole_directory_and_no_other(broker: SimulatedBroker, name: str) -> None:
    create_topic(broker, name, 4, flush_messages="1")
    assert outcomes(broker, name, 4) == [0] * 4
    broker.simulation.disk.broken.add("/two")
    assert outcomes(broker, name, 4) == [0, STORAGE_ERROR] * 2
    broker.simulation.disk.broken.clear()
    assert outcomes(broker, name, 4) == [0, STORAGE_ERROR] * 2, "what a sync has lost is not known to be there"
    assert fetch(broker, name, partition=1).error_code == STORAGE_ERROR
    assert list_offset(broker, name, -1, partition=1).error_code == STORAGE_ERROR
    assert list_offset(broker, name, 0, partition=1).error_code == STORAGE_ERROR
    assert delete_records(broker, name, 1, partition=3).error_code == STORAGE_ERROR
    assert delete_records(broker, name, 1, partition=0).error_code == ErrorCode.NONE
    assert not broker.node.fatal_failure.done()


def test_clients_are_reported(broker: SimulatedBroker, name: str) -> None:
    create_topic(broker, name, 2)
    broker.simulation.disk.broken.add("/two")
    produce(broker, name, partition=1)
    assert leaders(broker, name) == [(0, 0, []), (ErrorCode.LEADER_NOT_AVAILABLE, -1, [0])]
    reported = broker.call(DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse).results
    assert [(each.log_dir, each.error_code, len(each.topics)) for each in reported] == [
        ("/one", 0, 1),
        ("/two", STORAGE_ERROR, 0),
    ]


def test_who_waits_for_records_is_answered(broker: SimulatedBroker, name: str) -> None:
    create_topic(broker, name, 2)
    waiting = begin_fetch(broker, fetch_request([wanted(name, 0, partition=1)], max_wait_ms=60_000, min_bytes=1))
    began = broker.elapsed_ms()
    broker.services.partitions.fail_directory(broker.partition(name, 1).directory, OSError("gone"))
    assert partitions_of(waiting.result())[0].error_code == STORAGE_ERROR
    assert broker.elapsed_ms() - began < 1000


def test_life_goes_on_without_a_directory(broker: SimulatedBroker, name: str) -> None:
    create_topic(broker, f"{name}-a", 2)
    outcomes(broker, f"{name}-a", 2)
    broker.simulation.disk.broken.add("/two")
    produce(broker, f"{name}-a", partition=1)
    create_topic(broker, f"{name}-b", 2)
    assert paths(broker, f"{name}-b", 2) == ["/one", "/one"]
    pass_time(broker, 400)
    delete_topic(broker, f"{name}-b")
    broker.restart()
    assert outcomes(broker, f"{name}-a", 2) == [0, STORAGE_ERROR], "still failed: not created in another directory"
    assert leaders(broker, f"{name}-a")[1][1] == -1
    broker.simulation.disk.broken.clear()
    broker.restart()
    assert outcomes(broker, f"{name}-a", 2) == [0, 0]
    assert list_offset(broker, f"{name}-a", -1, partition=1).offset == 2, "one from before, one from now"


def test_a_partition_that_cannot_be_opened_at_a_start_fails_its_directory(broker: SimulatedBroker, name: str) -> None:
    create_topic(broker, name, 4)
    outcomes(broker, name, 4)
    broker.run(broker.node.stop())
    disk = broker.simulation.disk
    disk.broken.add(f"/two/{name}-3")
    broker.run(broker._start())
    assert outcomes(broker, name, 4) == [0, STORAGE_ERROR] * 2


def test_the_broker_ends_with_the_directory_of_its_metadata(broker: SimulatedBroker, name: str) -> None:
    create_topic(broker, name, 2)
    broker.simulation.disk.broken.add("/one")
    assert outcomes(broker, name, 2) == [STORAGE_ERROR, 0]
    assert "/one failed" in broker.node.fatal_failure.result()
    broker.simulation.disk.broken.clear()
    broker.restart()
    assert outcomes(broker, name, 2) == [0, 0]


def test_a_start_needs_the_directory_of_the_metadata(broker: SimulatedBroker) -> None:
    broker.run(broker.node.stop())
    broker.simulation.disk.broken.add("/one")
    with pytest.raises((OSError, LogDirectoryError)):
        broker.run(broker._start())


def test_only_the_broken_directory_is_recovered(broker: SimulatedBroker, name: str) -> None:
    create_topic(broker, name, 2)
    outcomes(broker, name, 2)
    broker.simulation.disk.broken.add("/two")
    produce(broker, name, partition=1)
    broker.run(broker.node.stop())
    disk = broker.simulation.disk
    assert disk.exists("/one/.kafka_cleanshutdown")
    assert not disk.exists("/two/.kafka_cleanshutdown")
    disk.broken.clear()
    broker.run(broker._start())


def test_a_full_disk_fails_nothing(broker: SimulatedBroker, name: str) -> None:
    create_topic(broker, name, 2, flush_messages="1")
    outcomes(broker, name, 2)
    disk = broker.simulation.disk
    disk.capacity_bytes = 0
    assert outcomes(broker, name, 2) == [STORAGE_ERROR] * 2
    assert delete_records(broker, name, 1, partition=0).error_code == STORAGE_ERROR
    pass_time(broker, 400)
    disk.capacity_bytes = None
    assert outcomes(broker, name, 2) == [0, 0]
    assert [list_offset(broker, name, -1, partition=index).offset for index in (0, 1)] == [2, 2]


def test_a_disk_that_breaks_under_compaction_fails_its_directory(broker: SimulatedBroker, name: str) -> None:
    fill(broker, name)
    fill(broker, f"{name}-other")
    assert [*paths(broker, name, 1), *paths(broker, f"{name}-other", 1)] == ["/one", "/two"]
    pass_time(broker, 3)  # only what is on the disk is compacted
    broker.simulation.disk.broken.add(f"/two/{name}-other-0/{0:020d}.log.cleaned")
    pass_time(broker, BACKOFF_SECONDS)
    assert len(offsets(broker, name)) < 20
    assert outcomes(broker, f"{name}-other", 1) == [STORAGE_ERROR]
    pass_time(broker, 2 * BACKOFF_SECONDS)
    broker.simulation.disk.broken.clear()
    broker.restart()
    assert offsets(broker, f"{name}-other") == [*range(20)]
    pass_time(broker, 2 * BACKOFF_SECONDS)
    assert len(offsets(broker, f"{name}-other")) < 20


@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC])
@pytest.mark.parametrize("ends_well", [True, False])
def test_a_swap_that_breaks_in_the_middle_is_completed_by_the_next_start(
    broker: SimulatedBroker, name: str, monkeypatch: pytest.MonkeyPatch, error: int, ends_well: bool
) -> None:
    """Its old segments have other names by then: without the new one a restart would find a hole."""
    create_topic(broker, f"{name}-one")
    fill(broker, name, count=1)
    for number in range(1, 20):
        put(broker, name, b"key", b"%d" % number)
    pass_time(broker, 3)
    disk = broker.simulation.disk
    rename = disk.rename

    def refuse_the_name(source: str, target: str) -> None:
        if source.endswith(".log.swap"):
            raise OSError(error, "no")
        rename(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(disk, "rename", refuse_the_name)
        pass_time(broker, BACKOFF_SECONDS)
        assert fetch(broker, name).error_code == STORAGE_ERROR
        pass_time(broker, 100)  # removed files go after a minute
    (broker.restart if ends_well else broker.kill)()
    assert offsets(broker, name)[0] == 0, "the only value of its key"
    pass_time(broker, 2 * BACKOFF_SECONDS)
    assert offsets(broker, name)[0] == 0
    assert len(offsets(broker, name)) < 10


def test_compaction_goes_on_without_a_directory_that_was_never_opened(broker: SimulatedBroker, name: str) -> None:
    fill(broker, name)
    fill(broker, f"{name}-other")
    pass_time(broker, BACKOFF_SECONDS)
    broker.simulation.disk.broken.add("/two")
    broker.restart()
    for number in range(20):
        put(broker, name, b"%d" % (number % 2), b"%d" % number)
    pass_time(broker, 2 * BACKOFF_SECONDS)
    assert len(offsets(broker, name)) < 20
