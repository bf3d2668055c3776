"""Opening logs: directories that a new partition finds, copies in two log directories, and recovered records."""

from collections.abc import Iterator
from uuid import UUID

import pytest

from odradek.log.log_config import LogConfig
from odradek.log.log_directory import LogDirectory
from odradek.metadata.entities import PartitionImage, TopicImage
from odradek.replica.log_opening import PendingLog, choose_copies, open_logs, spread_evenly, survey
from tests.handlers.requests import batch
from tests.simulation.simulated_host import Simulation

PARTITION = PartitionImage(0, (0,), (0,), 0, 0, 0)
TOPIC = TopicImage("topic", UUID(int=1), (PARTITION,), False)
OTHER_ID = UUID(int=2)
SEGMENT = "00000000000000000000.log"


@pytest.fixture
def simulation() -> Iterator[Simulation]:
    simulation = Simulation(0)
    yield simulation
    simulation.close()


def directory(simulation: Simulation, path: str = "/data") -> LogDirectory:
    simulation.disk.make_directories(path)
    return LogDirectory(path, simulation.host, None, None, False)


def pending(directory: LogDirectory, **config: int) -> PendingLog:
    return PendingLog(TOPIC, PARTITION, directory, LogConfig(**config))  # type: ignore[arg-type]  # integers only


def half_made(simulation: Simulation, at: LogDirectory, topic_id: UUID | None, content: bytes = b"") -> None:
    path = f"{at.path}/topic-0"
    simulation.disk.make_directories(path)
    simulation.disk.replace_file(f"{path}/{SEGMENT}", content)
    if topic_id is not None:
        at.write_partition_metadata("topic", 0, topic_id)


@pytest.mark.parametrize(
    ("topic_id", "content", "is_set_aside"),
    [
        (TOPIC.topic_id, b"", False),  # its own, from an attempt that failed after the id was written
        (None, b"", False),  # its own, or anything else without records
        (None, b"records", True),
        (OTHER_ID, b"", True),
        (OTHER_ID, b"records", True),
    ],
)
def test_a_new_partition_sets_aside_only_directories_that_may_have_records_of_others(
    simulation: Simulation, topic_id: UUID | None, content: bytes, is_set_aside: bool
) -> None:
    at = directory(simulation)
    half_made(simulation, at, topic_id, content)
    opened, unopened = open_logs([pending(at)], simulation.host, True)
    assert (len(opened), unopened) == (1, [])
    assert opened[0][1].log_end_offset == 0
    assert at.read_partition_metadata("topic", 0) == TOPIC.topic_id
    stray = [name for name in simulation.disk.list_directory("/data") if name.endswith("-stray")]
    assert len(stray) == is_set_aside


def test_a_creation_that_fails_leaves_nothing(simulation: Simulation, caplog: pytest.LogCaptureFixture) -> None:
    at = directory(simulation)
    simulation.disk.capacity_bytes = 0
    opened, unopened = open_logs([pending(at), pending(at)], simulation.host, True)
    assert opened == []
    assert [isinstance(each.problem, OSError) for each in unopened] == [True, True]
    assert simulation.disk.list_directory("/data") == []
    assert caplog.messages == ["a partition cannot be opened"], "logged once for all"
    caplog.clear()


def test_the_larger_of_two_copies_is_kept(simulation: Simulation) -> None:
    one, two = directory(simulation, "/one"), directory(simulation, "/two")
    half_made(simulation, one, TOPIC.topic_id)
    half_made(simulation, two, TOPIC.topic_id, b"records")
    hosted = {("topic", 0): TOPIC}
    contents = {each: survey(each, hosted) for each in (one, two)}
    assert choose_copies(contents, simulation.host) == {("topic", 0): two}
    assert not simulation.disk.exists("/one/topic-0")
    assert len(simulation.disk.list_directory("/one")) == 1, "set aside, not removed"


def test_new_partitions_go_to_usable_directories_with_the_fewest_partitions(simulation: Simulation) -> None:
    one, two, failed = (directory(simulation, path) for path in ("/one", "/two", "/failed"))
    failed.failure = "broken"
    spread = spread_evenly([pending(failed)] * 3, {one: 2, two: 1, failed: 0})
    assert [each.directory for each in spread] == [two, one, two]


@pytest.mark.parametrize(("flush_messages", "durable"), [(1, 1), (2, 0)])
def test_recovered_records_that_are_due_for_a_flush_are_durable_when_the_log_is_open(
    simulation: Simulation, flush_messages: int, durable: int
) -> None:
    at = directory(simulation)
    ((_, log),), _ = open_logs([pending(at)], simulation.host, True)
    log.append(memoryview(batch()), 0)
    ((_, recovered),), _ = open_logs([pending(at, flush_messages=flush_messages)], simulation.host, False)
    assert (recovered.log_end_offset, recovered.recovery_point_offset) == (1, durable)
