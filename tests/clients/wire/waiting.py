"""Apache Kafka does a little later what it has said: here that is awaited, by hand."""

import time
from collections.abc import Callable

from tests.clients.wire.connection import Connection
from tests.clients.wire.requests import PATIENCE_SECONDS, list_offset


def await_topic(connection: Connection, name: str, partitions: int = 1) -> None:
    """Apache Kafka acknowledges a topic before its own broker has heard of it, and leads its partitions one by one."""
    for partition in range(partitions):
        _await_answer(connection, name, partition, "NONE")


def await_deletion(connection: Connection, name: str) -> None:
    """As with a topic that is made, so with one that is deleted."""
    _await_answer(connection, name, 0, "UNKNOWN_TOPIC_OR_PARTITION")


def _await_answer(connection: Connection, name: str, partition: int, wanted: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (answer := list_offset(connection, name, -1, partition=partition)[0]) != wanted:
        assert time.monotonic() < deadline, f"{name}-{partition} still answers {answer}, not {wanted}"
        time.sleep(0.02)  # a poll's pause


def await_partitions(are_led: Callable[[], bool]) -> None:
    """Until each of many partitions answers as it must."""
    deadline = time.monotonic() + 10 * PATIENCE_SECONDS
    while not are_led():
        assert time.monotonic() < deadline, "not all partitions have a leader"
        time.sleep(0.2)  # a poll's pause
