"""The metrics of a real broker move as its clients act; its HTTP server is bounded."""

import json
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import psutil
import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer

from odradek.admin.broker_metrics import metrics_of_all, serves_metrics
from odradek.admin.broker_requests import BrokerRequests
from odradek.admin.cluster import Cluster
from odradek.local.running_broker import RunningBroker
from odradek.metrics.catalog import CATALOG
from odradek.server.monitoring.http_server import MOST_CONNECTIONS
from odradek.testing import broker as running_broker
from tests.metrics.exposed import Exposed, exposed, page
from tests.waiting import eventually

SECONDS = 30.0


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningBroker]:
    with running_broker({"num.partitions": 2}) as running:
        yield running


def produce(broker: RunningBroker, topic: str, count: int, **settings: object) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 20, **settings})
    failed: list[KafkaError] = []

    def delivered(error: KafkaError | None, _message: object) -> None:
        if error is not None:
            failed.append(error)

    for number in range(count):
        producer.produce(topic, b"x" * 100, str(number), on_delivery=delivered)
    producer.flush(SECONDS)
    if failed:
        raise KafkaException(failed[0])


def consume(broker: RunningBroker, topic: str, group: str, count: int) -> Consumer:
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap_servers, "group.id": group, "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    received = 0
    while received < count:
        message = consumer.poll(SECONDS)
        assert message is not None
        assert message.error() is None
        received += 1
    return consumer


def test_bytes_and_records_of_a_topic_and_requests_are_counted(broker: RunningBroker) -> None:
    before = exposed(broker)
    produce(broker, "orders", 500)
    consumer = consume(broker, "orders", "readers", 500)
    consumer.commit(asynchronous=False)
    after = exposed(broker)
    assert after.value("odradek_topic_records_in_total", topic="orders") == 500
    bytes_in = after.value("odradek_topic_bytes_in_total", topic="orders")
    assert bytes_in > 500 * 100
    assert after.value("odradek_topic_bytes_out_total", topic="orders") >= bytes_in
    assert after.value("odradek_topic_records_out_total", topic="orders") == pytest.approx(500, abs=2)
    eventually(lambda: exposed(broker).value("odradek_topic_size_bytes", topic="orders") == bytes_in)
    for api in ("Produce", "Fetch", "JoinGroup", "OffsetCommit"):
        assert after.value("odradek_requests_total", api=api) > before.value("odradek_requests_total", api=api)
        assert after.value("odradek_request_seconds_count", api=api) == after.value("odradek_requests_total", api=api)
    eventually(lambda: exposed(broker).value("odradek_groups", kind="classic", state="Stable") == 1)
    assert after.value("odradek_connections", listener="PLAINTEXT") >= 1
    waits = {"api": "Fetch", "stage": "wait"}  # of fetches that wait for records at the end of the topic
    eventually(lambda: exposed(broker).value("odradek_request_stage_seconds_total", **waits) > 0)
    consumer.close()
    eventually(lambda: exposed(broker).value("odradek_groups", kind="classic", state="Empty") == 1)


def test_transactions_are_counted_by_state(broker: RunningBroker) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "mover"})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce("moved", b"in a transaction")
    producer.flush()
    shards = {"coordinator": "transaction", "state": "active"}
    eventually(lambda: exposed(broker).value("odradek_coordinator_shards", **shards) > 0)
    eventually(lambda: exposed(broker).value("odradek_transactions", state="Ongoing") == 1)
    producer.commit_transaction()
    eventually(lambda: exposed(broker).value("odradek_transactions", state="CompleteCommit") == 1)


def test_topics_beyond_the_limit_share_one_series() -> None:
    with running_broker({"metrics.max.topics": 3}) as running:
        for number in range(6):
            produce(running, f"many-{number}", 10)
        found = exposed(running)
        topics = {dict(key)["topic"] for key in found.points["odradek_topic_records_in_total"]}
        assert topics == {"many-0", "many-1", "many-2", "other"}
        assert found.value("odradek_topic_records_in_total", topic="other") == 30
        assert found.value("odradek_topic_records_in_total") == 60


def test_errors_are_counted_by_code(broker: RunningBroker) -> None:
    with pytest.raises(KafkaException):
        produce(broker, "__consumer_offsets", 1)
    assert exposed(broker).value("odradek_request_errors_total", api="Produce", error="INVALID_TOPIC_EXCEPTION") >= 1


def test_connections_are_counted_with_the_reason_of_their_end(broker: RunningBroker) -> None:
    before = exposed(broker)
    with socket.create_connection((broker.host, broker.port)) as connection:
        connection.sendall(b"\xff\xff\xff\xff")
        assert connection.recv(1) == b""
    with socket.create_connection((broker.host, broker.port)):
        pass

    def grew(name: str, **labels: str) -> bool:
        return exposed(broker).value(name, **labels) > before.value(name, **labels)

    eventually(lambda: grew("odradek_connections_closed_total", reason="refused"))
    eventually(lambda: grew("odradek_connections_closed_total", reason="client"))
    assert grew("odradek_connections_accepted_total")


def test_the_process_and_the_event_loop_are_measured(broker: RunningBroker) -> None:
    eventually(lambda: exposed(broker).value("odradek_event_loop_lag_seconds_count") > 0)
    found = exposed(broker)
    assert 10e6 < found.value("process_resident_memory_bytes") < 1e9
    used = psutil.Process(broker.pid).cpu_times()
    assert 0 < found.value("process_cpu_seconds_total") <= used.user + used.system + 0.02  # the kernel rounds to 10 ms
    assert 5 < found.value("process_open_fds") < found.value("process_max_fds")
    assert abs(found.value("process_start_time_seconds") + found.value("odradek_uptime_seconds") - time.time()) < 60
    assert found.value("odradek_build_info", node_id="0") == 1
    assert found.value("odradek_controller_active") == 1
    assert found.value("odradek_ready") == 1


def test_everything_that_is_exposed_is_in_the_catalog(broker: RunningBroker) -> None:
    found = exposed(broker)
    exposed_types = dict(re.findall(r"^# TYPE (\w+) (\w+)$", found.text, re.MULTILINE))
    assert exposed_types.items() <= {name: each.kind.value for name, each in CATALOG.items()}.items()
    of_clusters = {"odradek_zookeeper_connected"}
    pushed_by_clients = {name for name in CATALOG if name.startswith("odradek_client_metric_")}
    # Series that begin with the first group, transaction, error or closed connection, in any order of the tests.
    by_state = {"odradek_groups", "odradek_transactions", "odradek_coordinator_shards", "odradek_topic_size_bytes"}
    by_event = {
        *(name for name in CATALOG if re.search("_requests?_", name)),
        "odradek_connections_closed_total",
    }
    absent = CATALOG.keys() - exposed_types.keys()
    assert of_clusters | pushed_by_clients <= absent <= of_clusters | pushed_by_clients | by_state | by_event


def test_the_same_metrics_come_over_the_wire(broker: RunningBroker) -> None:
    requests = BrokerRequests(Cluster(broker.bootstrap_servers, {}))
    assert all(serves_metrics(requests, each) for each in requests.describe().brokers.values())
    found, missing = metrics_of_all(requests, ["odradek_topic"])
    assert missing == {}
    (metrics,) = found
    page_now = exposed(broker)
    assert metrics.by_label("odradek_topic_records_in_total", "topic") == {
        dict(key)["topic"]: value for key, value in page_now.points["odradek_topic_records_in_total"].items()
    }
    of_topics = {name for name in CATALOG if name.startswith("odradek_topic")}
    assert of_topics - {"odradek_topic_size_bytes"} <= set(metrics.kinds) <= of_topics


def test_the_command_prints_metrics(broker: RunningBroker) -> None:
    command = [sys.executable, "-m", "odradek", "cluster", "metrics", "--bootstrap-server", broker.bootstrap_servers]
    text = subprocess.run([*command, "odradek_partitions"], capture_output=True, text=True, check=True).stdout
    assert re.search(r"broker 0\nodradek_partitions +\d+", text)
    text = subprocess.run(
        [*command, "odradek_requests", "--format", "json"], capture_output=True, text=True, check=True
    ).stdout
    points = json.loads(text)["brokers"][0]["points"]
    assert {"name", "labels", "value"} == set(points[0])


def test_health_and_readiness(broker: RunningBroker) -> None:
    assert page(broker, "/healthy") == (200, "healthy\n")
    assert page(broker, "/ready") == (200, "ready\n")
    assert page(broker, "/other").status == 404
    assert page(broker, "/metrics", "POST").status == 405
    assert page(broker, "/metrics", "HEAD") == (200, "")


def test_the_http_server_is_bounded(broker: RunningBroker) -> None:
    assert broker.metrics_url is not None
    host, port = broker.metrics_url.removeprefix("http://").removesuffix("/metrics").split(":")
    silent = [socket.create_connection((host, int(port))) for _ in range(2 * MOST_CONNECTIONS)]
    try:
        for connection in silent:
            connection.settimeout(SECONDS)
        assert silent[0].recv(1) == b"", "the oldest has made room"
        assert page(broker, "/healthy").status == 200
        silent[-1].sendall(b"GET /ready HTTP/1.1\r\n\r\n")
        assert silent[-1].recv(4096).startswith(b"HTTP/1.1 200 "), "the newest has its time"
    finally:
        for connection in silent:
            connection.close()
    with socket.create_connection((host, int(port))) as greedy:
        greedy.sendall(b"GET /metrics HTTP/1.1\r\n" + b"X: y\r\n" * 3000)
        assert greedy.recv(4096).startswith(b"HTTP/1.1 431 ")


def test_slow_requests_are_logged_once_each() -> None:
    with running_broker({"slow.request.ms": 0}) as running:
        produce(running, "t", 1)
        eventually(lambda: "slow request" in running.output)
        lines = [line for line in running.output.splitlines() if "slow request" in line]
        assert any("api=Metadata" in line and "handler_ms=" in line for line in lines)
        assert exposed(running).value("odradek_slow_requests_total") >= len(lines)


def test_metrics_can_be_off() -> None:
    with running_broker({"metrics.listener": ""}) as running:
        assert running.metrics_url is None


def test_an_address_in_use_is_named_with_its_setting() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(Exception, match=rf"127\.0\.0\.1:{port}: the port is in use.* in metrics\.listener"):
            running_broker({"metrics.listener": f"127.0.0.1:{port}"}).__enter__()


def test_exposed_reads_a_page() -> None:
    assert Exposed('a_total{x="1"} 2\n').value("a_total", x="1") == 2
