"""DescribeLogDirs: every directory, and the size of every partition that was asked for."""

import errno

import pytest

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from tests.handlers.brokers import AnyBroker, SimulatedBroker
from tests.handlers.requests import batch, create_topic, produce
from tests.replica.held_workers import HeldWorkers

SIZE = len(batch())


def ask(broker: AnyBroker, *wanted: tuple[str, list[int]], version: int = 5) -> DescribeLogDirsResponse:
    topics = [DescribableLogDirTopic(topic=topic, partitions=partitions) for topic, partitions in wanted]
    return broker.call(DescribeLogDirsRequest(topics=topics or None), DescribeLogDirsResponse, version)


def reported(answer: DescribeLogDirsResponse) -> dict[tuple[str, int], int]:
    return {
        (topic.name, each.partition_index): each.partition_size
        for result in answer.results
        for topic in result.topics
        for each in topic.partitions
    }


@pytest.mark.parametrize("version", [1, 2, 3, 4, 5])
def test_sizes_are_those_of_the_batches(broker: AnyBroker, name: str, version: int) -> None:
    create_topic(broker, name, 2)
    for _ in range(3):
        produce(broker, name, partition=1)
    answer = ask(broker, version=version)
    assert answer.error_code == ErrorCode.NONE
    found = reported(answer)
    assert (found[name, 0], found[name, 1]) == (0, 3 * SIZE)
    if version >= 4:
        assert answer.results[0].total_bytes >= answer.results[0].usable_bytes > 0


def test_only_what_is_asked_for_is_reported(broker: AnyBroker, name: str) -> None:
    create_topic(broker, name, 3)
    answer = ask(broker, (name, [2, 7]), (f"{name}-not", [0]))
    assert reported(answer) == {(name, 2): 0}


def test_an_empty_list_is_of_no_partition(broker: AnyBroker, name: str) -> None:
    create_topic(broker, name)
    answer = broker.call(DescribeLogDirsRequest(topics=[]), DescribeLogDirsResponse)
    assert reported(answer) == {}


def test_every_directory_is_reported_and_partitions_are_spread(name: str) -> None:
    broker = SimulatedBroker(log_dirs="/one,/two")
    create_topic(broker, name)
    create_topic(broker, f"{name}-other")
    answer = ask(broker)
    spread = {result.log_dir: [topic.name for topic in result.topics] for result in answer.results}
    assert spread == {"/one": [name], "/two": [f"{name}-other"]}
    broker.restart()
    assert reported(ask(broker)) == {(name, 0): 0, (f"{name}-other", 0): 0}
    broker.close()


def test_log_directories_are_described_concurrently() -> None:
    workers = HeldWorkers()
    broker = SimulatedBroker(workers, log_dirs="/one,/two")
    workers.held.add("space")
    asking = broker.begin(DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse)
    assert workers.waiting == ["space", "space"]
    workers.release_all()
    assert [each.log_dir for each in asking.result().results] == ["/one", "/two"]
    broker.close()


def test_a_directory_that_cannot_be_read_does_not_fail_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = SimulatedBroker(log_dirs="/one,/two")
    space = broker.host.disk.space

    def fail_on_two(path: str) -> tuple[int, int]:
        if path == "/two":
            raise OSError(errno.ESTALE, "Stale file handle")
        return space(path)

    monkeypatch.setattr(broker.host.disk, "space", fail_on_two)
    results = ask(broker).results
    assert [(each.log_dir, each.error_code) for each in results] == [
        ("/one", ErrorCode.NONE),
        ("/two", ErrorCode.KAFKA_STORAGE_ERROR),
    ]
    broker.close()


def test_a_directory_that_hangs_is_described_without_its_space(name: str) -> None:
    workers = HeldWorkers()
    broker = SimulatedBroker(workers, log_dirs="/one,/two")
    create_topic(broker, name)
    create_topic(broker, f"{name}-other")
    workers.hung.add("/two")
    one, two = ask(broker).results
    assert one.total_bytes > 0
    assert ([topic.name for topic in two.topics], two.total_bytes, two.usable_bytes) == ([f"{name}-other"], -1, -1)
    broker.close()
