"""Waiting fetches count the bytes that become readable, whether they were appended at once or committed later."""

import pytest

from odradek.metadata.entities import PartitionImage
from odradek.replica.partition import Partition
from odradek.replica.waiting_requests import size_between
from tests.handlers.brokers import SimulatedBroker
from tests.handlers.requests import (
    base_offsets,
    batch,
    begin_fetch,
    create_topic,
    fetch_request,
    partitions_of,
    wanted,
)

SIZE = len(batch())
MAX_WAIT_MS = 60_000


@pytest.fixture
def partition(broker: SimulatedBroker, name: str) -> Partition:
    """With a second in-sync replica, so that the test says when records are committed."""
    create_topic(broker, name)
    partition = broker.partition(name)
    partition.become_leader(PartitionImage(0, (0, 1), (0, 1), 0, 1, 1))
    return partition


def test_a_fetch_waits_until_enough_bytes_are_committed(
    broker: SimulatedBroker, name: str, partition: Partition
) -> None:
    for _ in range(3):
        partition.append(memoryview(batch()), -1)
    request = fetch_request([wanted(name, 0)], max_wait_ms=MAX_WAIT_MS, min_bytes=2 * SIZE)
    waiting = begin_fetch(broker, request)
    began_ms = broker.elapsed_ms()
    partition.append(memoryview(batch()), -1)
    partition.advance_high_watermark(1)
    broker.step()
    assert waiting.task.done() is False, "one batch is too few bytes"  # type: ignore[attr-defined]  # simulated
    partition.advance_high_watermark(2)
    assert base_offsets(partitions_of(waiting.result())[0].records) == [0, 1]
    assert broker.elapsed_ms() - began_ms < 1000


def test_the_size_of_records_is_known_without_the_disk(partition: Partition) -> None:
    for _ in range(3):
        partition.append(memoryview(batch()), -1)
    assert size_between(partition.log, 0, 3) == 3 * SIZE
    assert size_between(partition.log, 1, 2) == SIZE
    assert size_between(partition.log, 2, 2) is None
