"""Real clients push their metrics, and the command line shows them: librdkafka and Java, subscribed by Kafka's tool."""

import logging
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer

from odradek.admin.broker_metrics import metrics_of_all
from odradek.admin.broker_requests import BrokerRequests
from odradek.admin.cluster import Cluster
from odradek.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from odradek.protocol.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from odradek.testing import RunningBroker, broker, cluster
from tests.commands import run_odradek
from tests.jvm.tools import ToolSession
from tests.waiting import eventually
from tests.wire import connect

WAIT_S = 60.0


@pytest.fixture
def running() -> Iterator[RunningBroker]:
    with broker() as started:
        yield started


def await_clients(address: str, condition: Callable[[dict[str, Any]], bool], work: Callable[[], object]) -> Any:
    """The first listed client that the condition holds for."""
    deadline = time.monotonic() + WAIT_S
    while True:
        work()
        rows = run_odradek("client", "list", "-b", address, "--format", "json").rows
        for row in rows:
            if condition(row):
                return row
        assert time.monotonic() < deadline, rows


def await_subscription(address: str) -> None:
    """Until the broker advertises the APIs of client telemetry: it learns of a subscription from the controller."""

    def is_advertised() -> bool:
        with connect(address) as client:
            answer = client.call(ApiVersionsRequest(), ApiVersionsResponse, 0)
        return GetTelemetrySubscriptionsRequest.api_key in {each.api_key for each in answer.api_keys}

    eventually(is_advertised)


def described(address: str, instance_id: str) -> dict[str, Any]:
    return run_odradek("client", "describe", instance_id, "-b", address, "--format", "json").row


def values(row: dict[str, Any]) -> dict[str, float]:
    totals: dict[str, float] = {}
    for each in row["values"]:
        totals[each["name"]] = totals.get(each["name"], 0.0) + each["value"]
    return totals


def test_librdkafka_reports_no_instance_id_without_a_subscription(
    running: RunningBroker, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    producer = Producer({"bootstrap.servers": running.bootstrap_servers}, logger=logging.getLogger("librdkafka"))
    producer.produce("orders", b"one")
    assert producer.flush(30) == 0  # the client would ask for its subscription when it connects
    producer.poll(0.5)
    assert caplog.messages == []


@pytest.mark.timeout(120)
def test_librdkafka_pushes_its_metrics(running: RunningBroker) -> None:
    address = running.bootstrap_servers
    assert "no client has requested its subscription" in run_odradek("client", "list", "-b", address).output
    subscribed = run_odradek("client", "subscribe", "all", "--metrics", "*", "--interval", "200ms", "-b", address)
    assert subscribed.code == 0, subscribed.errors
    producer = Producer({"bootstrap.servers": address, "client.id": "shop"})
    consumer = Consumer({"bootstrap.servers": address, "client.id": "billing", "group.id": "billing"})
    consumer.subscribe(["orders"])

    def work() -> None:
        producer.produce("orders", b"one")
        producer.flush(10)
        consumer.poll(0.1)

    for client_id in ("shop", "billing"):
        row = await_clients(address, lambda row: row["client_id"] == client_id and row["pushes"] >= 2, work)  # noqa: B023 - used in its turn
        assert row["software_name"].startswith("confluent-kafka-python")
        assert row["requested_metrics"] == ["*"]
        assert row["last_error"] in ("NONE", "THROTTLING_QUOTA_EXCEEDED")
        found = values(described(address, row["instance_id"]))
        assert any(
            name.startswith(f"org.apache.kafka.{'producer' if client_id == 'shop' else 'consumer'}") for name in found
        )
    summed = "odradek_client_metric_all_clients"
    sums = metrics_of_all(BrokerRequests(Cluster(address, {})), [summed])[0][0]
    assert any(name.startswith("org.apache.kafka") for name in sums.by_label(summed, "metric"))
    shown = run_odradek("client", "describe", row["instance_id"], "-b", address)
    assert "METRIC" in shown.output
    consumer.close()


@pytest.mark.more
@pytest.mark.jvm
@pytest.mark.timeout(240)
def test_java_clients_push_their_metrics_as_kafkas_tool_asks(running: RunningBroker, jvm: None) -> None:
    address = running.bootstrap_servers
    with ToolSession() as tools:
        alter = ["--alter", "--name", "java", "--metrics", "org.apache.kafka.producer.", "--interval", "300"]
        alter += ["--match", "client_software_name=apache-kafka-java"]
        tools.run("kafka-client-metrics", "--bootstrap-server", address, *alter).checked()
        listed = tools.run("kafka-client-metrics", "--bootstrap-server", address, "--list").checked()
        assert "java" in listed.split()
        shown = tools.run(
            "kafka-client-metrics", "--bootstrap-server", address, "--describe", "--name", "java"
        ).checked()
        assert "interval.ms=300" in shown
        run = ["--topic", "orders", "--num-records", "300", "--throughput", "100", "--record-size", "100"]
        run += ["--producer-props", f"bootstrap.servers={address}", "client.id=shop"]
        tools.run("kafka-producer-perf-test", *run).checked()
        row = await_clients(address, lambda row: row["client_id"] == "shop", lambda: None)
        assert row["software_name"] == "apache-kafka-java"
        assert row["pushes"] >= 2
        found = values(described(address, row["instance_id"]))
        # The records since the last regular push are missing if the client ends before it has sent its last one.
        assert 150 <= found["org.apache.kafka.producer.record.send.total"] <= 300
        deleted = tools.run(
            "kafka-client-metrics", "--bootstrap-server", address, "--delete", "--name", "java"
        ).checked()
        assert deleted
        assert run_odradek("client", "subscriptions", "-b", address, "--format", "json").output == ""


@pytest.mark.more
@pytest.mark.timeout(180)
def test_clients_of_all_brokers_are_listed() -> None:
    with cluster(brokers=2) as running:
        address = running.bootstrap_servers
        assert (
            run_odradek("client", "subscribe", "all", "--metrics", "*", "--interval", "200ms", "-b", address).code == 0
        )
        for each in address.split(","):
            await_subscription(each)
        producers = [
            Producer({"bootstrap.servers": each, "client.id": f"shop-{number}"})
            for number, each in enumerate(address.split(","))
        ]
        for number in range(len(producers)):
            row = await_clients(
                address,
                lambda row: row["client_id"] == f"shop-{number}" and row["pushes"] >= 1,  # noqa: B023
                lambda: [each.poll(0.05) for each in producers],
            )
            assert row["broker"] in (1, 2)


def test_telemetry_can_be_turned_off() -> None:
    with broker(**{"client.telemetry.enable": False}) as running:
        ran = run_odradek("client", "list", "-b", running.bootstrap_servers)
        assert ran.code == 1
        assert "client.telemetry.enable" in ran.errors


def test_a_client_that_does_not_exist(running: RunningBroker) -> None:
    unknown = run_odradek("client", "describe", "Wx6hXBUsRYuiVrYqnvfDEw", "-b", running.bootstrap_servers)
    assert "no broker knows the client instance" in unknown.errors
    assert (
        "is not a client instance id" in run_odradek("client", "describe", "x", "-b", running.bootstrap_servers).errors
    )
