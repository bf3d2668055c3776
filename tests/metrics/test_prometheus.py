"""Prometheus itself reads the metrics, the alert rules and every expression of the dashboard."""

import contextlib
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # not in __all__

from odradek.cli.metrics import asset, build_dashboard
from odradek.testing import RunningBroker, RunningCluster
from tests.metrics.alert_cases import CASES, RULES, promtool_file
from tests.metrics.exposed import page
from tests.metrics.real_prometheus import RULE_FILE, Prometheus, needs_prometheus, promtool, running_prometheus
from tests.waiting import eventually

SCHEMAS = Path(__file__).parent / "grafana"
DASHBOARD = build_dashboard(asset("panels.txt"))
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
TOPIC = "orders"
PATIENCE_S = 150.0
# Panels about faults, and about a ZooKeeper that a single broker does not have.
EMPTY_ON_A_HEALTHY_BROKER = {"Slow and throttled requests", "Failed authentications", "ZooKeeper session"}


def schema(name: str, definition: str | None = None) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((SCHEMAS / f"{name}.json").read_text())
    return found if definition is None else {**found, "$ref": f"#/definitions/{definition}"}


def test_grafanas_schemas_accept_the_dashboard() -> None:
    jsonschema.validate(DASHBOARD, schema("dashboard"))
    for panel in PANELS:
        jsonschema.validate(panel["options"], schema(panel["type"], "Options"))
        for target in panel["targets"]:
            jsonschema.validate(target, schema("prometheus"))


def test_grafanas_schemas_refuse_fields_and_types_that_grafana_does_not_know() -> None:
    for change in ({"colour": "red"}, {"refresh": 10}, {"panels": [{**PANELS[0], "gridPos": {"x": "left"}}]}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({**DASHBOARD, **change}, schema("dashboard"))


def test_every_alert_has_a_case() -> None:
    assert [case.alert for case in CASES] == list(RULES)


@needs_prometheus
@pytest.mark.parametrize("to_the_end", [False, pytest.param(True, marks=pytest.mark.soak)])
def test_alerts_fire_in_time_and_only_then(tmp_path: Path, to_the_end: bool) -> None:
    (tmp_path / RULE_FILE).write_text(asset("alerts.yml"))
    (tmp_path / "cases.yml").write_text(promtool_file(RULE_FILE, to_the_end=to_the_end))
    assert f"{len(RULES)} rules found" in promtool("check", "rules", str(tmp_path / RULE_FILE))
    promtool("test", "rules", str(tmp_path / "cases.yml"))


def write_and_read(bootstrap_servers: str, is_over: threading.Event) -> None:
    """Records of an idempotent and a transactional producer, read by a group, and a request that is refused."""
    new = NewTopic(TOPIC, 3, config={"flush.messages": "1"})
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})  # one that is destroyed does not answer
    admin.create_topics([new])[TOPIC].result(60)
    settings = {"bootstrap.servers": bootstrap_servers}
    producer = Producer({**settings, "transactional.id": "loader"})
    producer.init_transactions(60)
    consumer = Consumer({**settings, "group.id": "readers", "auto.offset.reset": "earliest"})
    consumer.subscribe([TOPIC])
    while not is_over.wait(0.1):
        producer.begin_transaction()
        for number in range(20):
            producer.produce(TOPIC, b"a value", str(number))
        producer.commit_transaction(60)
        consumer.consume(100, timeout=0.1)
        with contextlib.suppress(KafkaException):  # an offset that the partition does not have
            consumer.offsets_for_times([TopicPartition("no-such-topic", 0, 0)], timeout=5)
    consumer.close()


@contextlib.contextmanager
def loaded(bootstrap_servers: str) -> Iterator[None]:
    subscription = ["client", "subscribe", "all", "--metrics", "*", "--interval", "1s"]
    command = [sys.executable, "-m", "odradek", *subscription, "-b", bootstrap_servers]
    subprocess.run(command, check=True, capture_output=True)
    is_over = threading.Event()
    thread = threading.Thread(target=write_and_read, args=(bootstrap_servers, is_over))
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def empty_panels(prometheus: Prometheus) -> set[str]:
    """Titles of panels with an expression that gives nothing; an expression that Prometheus refuses fails."""
    return {
        panel["title"]
        for panel in PANELS
        for target in panel["targets"]
        if not prometheus.query(target["expr"].replace("$__rate_interval", "10s").replace("$instance", ".*"))
    }


def wait_for_panels(prometheus: Prometheus, may_be_empty: set[str]) -> None:
    def missing() -> set[str]:
        return empty_panels(prometheus) - may_be_empty

    eventually(lambda: not missing(), missing, seconds=PATIENCE_S, pause_s=0.5)


@needs_prometheus
@pytest.mark.timeout(300)
def test_a_scrape_fills_the_panels_and_fires_no_alert(odradek_broker: RunningBroker, tmp_path: Path) -> None:
    assert odradek_broker.metrics_url is not None
    with loaded(odradek_broker.bootstrap_servers), running_prometheus(tmp_path, [odradek_broker.metrics_url]) as server:
        wait_for_panels(server, EMPTY_ON_A_HEALTHY_BROKER)
        promtool("check", "metrics", given=page(odradek_broker, "/metrics").text)
        assert server.ask("targets")["activeTargets"][0]["lastError"] == ""
        assert {rule["health"] for group in server.ask("rules")["groups"] for rule in group["rules"]} == {"ok"}
        assert server.ask("alerts")["alerts"] == []


@needs_prometheus
@pytest.mark.soak
@pytest.mark.timeout(300)
def test_a_killed_broker_is_an_alert(odradek_cluster: RunningCluster, tmp_path: Path) -> None:
    urls = [broker.metrics_url or "" for broker in odradek_cluster.brokers.values()]
    with loaded(odradek_cluster.bootstrap_servers), running_prometheus(tmp_path, urls) as server:
        wait_for_panels(server, EMPTY_ON_A_HEALTHY_BROKER - {"ZooKeeper session"})
        assert server.ask("alerts")["alerts"] == []
        odradek_cluster.kill(3)
        eventually(lambda: {"OdradekBrokerDown", "OdradekUnderReplicated"} <= alerts(server))
        assert not alerts(server) & {"OdradekNoController", "OdradekUnderMinIsr"}


def alerts(server: Prometheus) -> set[str]:
    """Names of alerts that wait for their time or fire."""
    return {alert["labels"]["alertname"] for alert in server.ask("alerts")["alerts"]}
