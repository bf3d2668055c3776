"""Telemetry through the handlers: who may ask, push and see; values on a worker; software of clients."""

import asyncio
import functools
import inspect
import sys
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from odradek.handlers import push_telemetry
from odradek.handlers.context import ClientConnection, RequestContext
from odradek.handlers.push_telemetry import READ_AT_ONCE_BYTES
from odradek.handlers.telemetry_clients import client_facts
from odradek.host.worker_turns import WorkerTurns
from odradek.protocol.compression import Compression, compress
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from odradek.protocol.messages.describe_client_telemetry import (
    DescribeClientTelemetryRequest,
    DescribeClientTelemetryResponse,
)
from odradek.protocol.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from odradek.protocol.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse
from odradek.security.principals import Principal
from odradek.telemetry.client_telemetry import MOST_WAITING_PUSHES as MOST_WAITING
from tests.handlers.brokers import SimulatedBroker
from tests.handlers.requests import alter_configs
from tests.telemetry.otlp_data import counter, histogram, metrics_data

SECURED: dict[str, Any] = {
    "authorizer_class_name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super_users": "User:admin",
}
CLIENT_METRICS = 16


@pytest.fixture
def broker() -> Iterator[SimulatedBroker]:
    broker = SimulatedBroker(**SECURED)
    become(broker, "admin")
    alter_configs(broker, CLIENT_METRICS, "all", metrics="*", interval_ms="1000")
    yield broker
    broker.close()


def become(broker: SimulatedBroker, name: str) -> None:
    broker.client = ClientConnection("PLAINTEXT", "10.0.0.1", 4711)
    broker.client.principal = Principal("User", name)


def subscribe(broker: SimulatedBroker) -> GetTelemetrySubscriptionsResponse:
    return broker.call(
        GetTelemetrySubscriptionsRequest(client_instance_id=UUID(int=0)), GetTelemetrySubscriptionsResponse
    )


def push(broker: SimulatedBroker, metrics: bytes, compression: int = 0) -> tuple[UUID, int]:
    given = subscribe(broker)
    request = PushTelemetryRequest(
        client_instance_id=given.client_instance_id,
        subscription_id=given.subscription_id,
        compression_type=compression,
        metrics=metrics,
    )
    return given.client_instance_id, broker.call(request, PushTelemetryResponse).error_code


def describe(broker: SimulatedBroker, *ids: UUID) -> DescribeClientTelemetryResponse:
    request = DescribeClientTelemetryRequest(instance_ids=list(ids) or None, include_values=bool(ids))
    return broker.call(request, DescribeClientTelemetryResponse)


def test_every_client_may_push_and_those_who_may_describe_the_cluster_see_it(broker: SimulatedBroker) -> None:
    become(broker, "nobody")
    broker.call(ApiVersionsRequest(client_software_name="java", client_software_version="4.3"), ApiVersionsResponse, 3)
    instance_id, error = push(broker, metrics_data(counter("sent", 5, topic="orders")))
    assert error == ErrorCode.NONE
    assert describe(broker).error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    become(broker, "admin")
    (instance,) = describe(broker, instance_id).instances
    assert (instance.software_name, instance.software_version) == ("java", "4.3")
    assert (instance.host, instance.port, instance.pushes, instance.series) == ("10.0.0.1", 4711, 1, 1)
    (value,) = instance.values
    assert (value.name, value.value, value.attributes[0].value) == ("sent", 5.0, "orders")
    assert describe(broker, UUID(int=99)).instances == []
    assert [each.values for each in describe(broker).instances] == [[]]


def test_counts_of_a_series_that_exceed_the_response_are_bounded(broker: SimulatedBroker) -> None:
    latency = histogram("latency", 2**63 - 1, 1.7e308)
    instance_id, error = push(broker, metrics_data(latency, latency))
    assert error == ErrorCode.NONE
    (value,) = describe(broker, instance_id).instances[0].values
    assert (value.value, value.count) == (sys.float_info.max, 2**63 - 1)


def test_a_large_push_is_read_on_a_worker(broker: SimulatedBroker) -> None:
    data = metrics_data(*(counter(f"n{number}", number) for number in range(500)))
    assert len(data) > READ_AT_ONCE_BYTES
    instance_id, error = push(broker, data)
    assert error == ErrorCode.NONE
    assert describe(broker, instance_id).instances[0].series == 500


def begin_push(broker: SimulatedBroker, metrics: bytes, compression: int) -> Any:
    """The answer, or an awaitable if a worker reads the push."""
    given = subscribe(broker)
    request = PushTelemetryRequest(
        client_instance_id=given.client_instance_id,
        subscription_id=given.subscription_id,
        terminating=True,
        compression_type=compression,
        metrics=metrics,
    )
    context = RequestContext(broker.services, broker.client, 0, "app")

    async def begin() -> Any:
        return push_telemetry.handle(request, context)

    return asyncio.run(begin())


def test_a_small_push_is_read_on_a_worker_if_it_is_compressed(broker: SimulatedBroker) -> None:
    data = metrics_data(counter("sent", 5))
    assert begin_push(broker, data, Compression.NONE).error_code == ErrorCode.NONE
    begun = begin_push(broker, compress(Compression.ZSTD, b"\x10\x01" * 40_000), Compression.ZSTD)
    assert inspect.isawaitable(begun)


def test_pushes_are_read_one_at_a_time_and_a_bounded_number_waits() -> None:
    async def scenario() -> None:
        turns = WorkerTurns(MOST_WAITING)
        running: list[int] = []

        async def read(number: int) -> int:
            running.append(number)
            await asyncio.sleep(0)  # others would run here
            assert running == [number]
            running.remove(number)
            return number

        reads = [turns.run(functools.partial(read, number)) for number in range(MOST_WAITING + 1)]
        assert turns.are_full
        assert await asyncio.gather(*reads) == list(range(MOST_WAITING + 1))
        await asyncio.sleep(0)
        assert not turns.are_full

    asyncio.run(scenario())


def test_a_push_is_read_to_its_end_though_its_connection_closes() -> None:
    async def scenario() -> None:
        turns, may_end, ended = WorkerTurns(MOST_WAITING), asyncio.Event(), asyncio.Event()

        async def read() -> None:
            await may_end.wait()
            ended.set()

        turns.run(read).cancel()
        may_end.set()
        await asyncio.wait_for(ended.wait(), 10)

    asyncio.run(scenario())


def test_a_push_is_throttled_while_many_wait(broker: SimulatedBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WorkerTurns, "are_full", True)
    assert begin_push(broker, b"x", Compression.ZSTD).error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED


def advertised(broker: SimulatedBroker) -> set[int]:
    return {each.api_key for each in broker.call(ApiVersionsRequest(), ApiVersionsResponse, 0).api_keys}


def test_the_apis_are_advertised_while_a_subscription_exists(broker: SimulatedBroker) -> None:
    assert {71, 72} <= advertised(broker)
    alter_configs(broker, CLIENT_METRICS, "all", metrics=None, interval_ms=None)
    assert not {71, 72} & advertised(broker)
    assert not subscribe(broker).error_code  # a client that has found them before


def test_a_broker_without_telemetry_does_not_serve_the_apis() -> None:
    broker = SimulatedBroker(client_telemetry_enable="false")
    try:
        alter_configs(broker, CLIENT_METRICS, "all", metrics="*")
        assert not {71, 72} & advertised(broker)
        assert subscribe(broker).error_code == ErrorCode.UNSUPPORTED_VERSION
        assert describe(broker).error_code == ErrorCode.UNSUPPORTED_VERSION
    finally:
        broker.close()


def test_the_facts_of_a_client_are_bounded(broker: SimulatedBroker) -> None:
    connection = ClientConnection("PLAINTEXT", "10.0.0.1")
    context = RequestContext(broker.services, connection, 0, "x" * 32_000)
    assert len(client_facts(context).client_id or "") == 256


def test_own_apis_are_listed_for_own_clients_only(broker: SimulatedBroker) -> None:
    for name, is_listed in (("odradek", True), ("java", False)):
        request = ApiVersionsRequest(client_software_name=name, client_software_version="1")
        answer = broker.call(request, ApiVersionsResponse, 3)
        assert (10002 in {each.api_key for each in answer.api_keys}) is is_listed
