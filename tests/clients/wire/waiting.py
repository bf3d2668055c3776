"""Apache Kafka does a little later what it has said: here that is awaited, by hand."""

from tests.clients.wire.connection import Connection
from tests.clients.wire.requests import PATIENCE_SECONDS, list_offset
from tests.waiting import eventually


def await_topic(connection: Connection, name: str, partitions: int = 1) -> None:
    """Apache Kafka acknowledges a topic before its own broker has heard of it, and leads its partitions one by one."""
    for partition in range(partitions):
        _await_answer(connection, name, partition, "NONE")


def await_deletion(connection: Connection, name: str) -> None:
    """As with a topic that is made, so with one that is deleted."""
    _await_answer(connection, name, 0, "UNKNOWN_TOPIC_OR_PARTITION")


def _await_answer(connection: Connection, name: str, partition: int, wanted: str) -> None:
    eventually(
        lambda: list_offset(connection, name, -1, partition=partition)[0] == wanted,
        f"{name}-{partition} answers {wanted}",
        seconds=PATIENCE_SECONDS,
    )
