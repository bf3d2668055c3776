"""A partition keeps its log of a shard for as long as it is the same partition, and leads."""

from collections.abc import Iterator
from typing import cast

import pytest

from odradek.coordinator.runtime.topic_logs import TopicLogs
from odradek.replica.partition_table import PartitionTable
from tests.coordinator.runtime.log_partition import LogPartition
from tests.simulation.simulated_host import Simulation


class Table:
    def __init__(self) -> None:
        self.partitions: dict[int, LogPartition] | None = None

    def topic(self, name: str) -> dict[int, LogPartition] | None:
        return self.partitions if name == "__consumer_offsets" else None


@pytest.fixture
def simulation() -> Iterator[Simulation]:
    simulation = Simulation(1)
    simulation.disk.make_directories("/log")
    yield simulation
    simulation.close()


def test_the_log_of_a_partition_stays_the_same_until_the_partition_is_another(simulation: Simulation) -> None:
    table = Table()
    logs = TopicLogs("__consumer_offsets", cast("PartitionTable", table), simulation.host.clock)
    assert logs.led() == []
    partition = LogPartition(simulation)
    table.partitions = {0: partition}
    (first,) = logs.led()
    assert logs.led() == [first]
    partition.is_leader = False
    assert logs.led() == []
    partition.is_leader = True
    assert logs.led() == [first]
    table.partitions = {0: LogPartition(simulation)}
    (second,) = logs.led()
    assert second is not first
    assert second.partition is not first.partition
