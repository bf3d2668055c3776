"""A transaction that is open in a partition and that no coordinator knows, as clients before KIP-890 could leave it."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from odradek.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from tests.clients.wire.transactions import Identity, await_coordinator, init_producer, send

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.wire import WireClient

BROKER_RESOURCE, SET, DELETE = 4, 0, 1
VERIFICATION = "transaction.partition.verification.enable"
WITHOUT_JOINING = 10  # a version of Produce that does not add its partitions to the transaction
HOUR_MS = 3_600_000
PATIENCE_SECONDS = 30.0


@contextmanager
def without_verification(connection: WireClient) -> Iterator[None]:
    """The brokers accept a batch of a transaction to which its partition was not added."""
    _alter(connection, SET, "false")
    try:
        yield
    finally:
        _alter(connection, DELETE, None)


def _alter(connection: WireClient, operation: int, value: str | None) -> None:
    config = AlterableConfig(name=VERIFICATION, config_operation=operation, value=value)
    resource = AlterConfigsResource(resource_type=BROKER_RESOURCE, resource_name="", configs=[config])
    request = IncrementalAlterConfigsRequest(resources=[resource])
    (result,) = connection.call(request, IncrementalAlterConfigsResponse, 1).responses
    assert result.error_code == 0, result.error_message


def leave_hanging(connection: WireClient, transactional_id: str, topic: str, partition: int = 0) -> Identity:
    """Open a transaction in a partition, an hour ago by its record, without the knowledge of its coordinator."""
    await_coordinator(connection, transactional_id)
    producer = init_producer(connection, transactional_id)
    an_hour_ago_ms = time.time_ns() // 1_000_000 - HOUR_MS
    with without_verification(connection):
        deadline = time.monotonic() + PATIENCE_SECONDS  # Apache Kafka applies a setting after its answer
        while True:
            error, _offset = send(
                connection,
                transactional_id,
                producer,
                topic,
                0,
                partition,
                WITHOUT_JOINING,
                timestamp_ms=an_hour_ago_ms,
            )
            if error == "NONE":
                return producer
            assert time.monotonic() < deadline, error
            time.sleep(0.05)  # a poll's pause
