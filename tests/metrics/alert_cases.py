"""For each alert: series that make it fire, series that do not, and when and how it fires. Promtool runs them."""

from typing import Any, NamedTuple

import yaml

from odradek.cli.metrics import asset
from odradek.metrics.broker_metrics import LAG_BOUNDS
from odradek.metrics.histogram import LATENCY_BOUNDS

BROKER = {"job": "odradek", "instance": "b1"}
CLUSTER = {"cluster_id": "c1"}
MINUTES = 35  # of the series
EVALUATION_S = 5  # between two evaluations of the rules
Series = dict[str, str]
RULES: dict[str, dict[str, Any]] = {
    rule["alert"]: rule for group in yaml.safe_load(asset("alerts.yml"))["groups"] for rule in group["rules"]
}


class AlertCase(NamedTuple):
    """`failing` and `healthy` are values of series by minute, in promtool's notation."""

    alert: str
    failing: Series
    healthy: Series
    fires_after_s: int  # the first evaluation at which it fires
    labels: dict[str, str]
    summary: str


def gauge(name: str, value: float, **labels: str) -> Series:
    return {series_name(name, **labels): f"{value}x{MINUTES}"}


def counter(name: str, per_minute: float, **labels: str) -> Series:
    return {series_name(name, **labels): f"0+{per_minute}x{MINUTES}"}


def histogram(name: str, bounds: tuple[float, ...], seconds: float, **labels: str) -> Series:
    """A hundred observations a minute, all of `seconds`."""
    return {
        series_name(f"{name}_bucket", le=le, **labels): f"0+{100 if float(le) >= seconds else 0}x{MINUTES}"
        for le in (*map(str, bounds), "+Inf")
    }


def series_name(name: str, **labels: str) -> str:
    inside = ",".join(f'{label}="{value}"' for label, value in {**BROKER, **labels}.items())
    return f"{name}{{{inside}}}"


def of_two_clusters(name: str, first: float, second: float) -> Series:
    """A gauge of one broker of each cluster, with the series that name their clusters."""
    found: Series = {}
    for instance, cluster_id, value in (("b1", "c1", first), ("b2", "c2", second)):
        found |= gauge(name, value, instance=instance)
        found |= gauge("odradek_build_info", 1, instance=instance, cluster_id=cluster_id, version="1")
    return found


def of_gauge(
    alert: str, name: str, bad: float, good: float, fires_after_s: int, summary: str, **labels: str
) -> AlertCase:
    return AlertCase(
        alert, gauge(name, bad, **labels), gauge(name, good, **labels), fires_after_s, {**BROKER, **labels}, summary
    )


CASES = [
    of_gauge("OdradekBrokerDown", "up", 0, 1, 60, "Broker b1 does not answer"),
    of_gauge("OdradekBrokerNotReady", "odradek_ready", 0, 1, 300, "Broker b1 is not ready"),
    AlertCase(
        "OdradekNoController",
        of_two_clusters("odradek_controller_active", 0, 1),
        of_two_clusters("odradek_controller_active", 1, 1),
        60, CLUSTER, "The cluster c1 has no controller",
    ),
    AlertCase(
        "OdradekSeveralControllers",
        of_two_clusters("odradek_controller_active", 1, 1)
        | gauge("odradek_controller_active", 1, instance="b3")
        | gauge("odradek_build_info", 1, instance="b3", cluster_id="c1", version="1"),
        of_two_clusters("odradek_controller_active", 1, 1),
        120, CLUSTER, "2 brokers of the cluster c1 take themselves for the controller",
    ),
    AlertCase(
        "OdradekOfflinePartitions",
        of_two_clusters("odradek_offline_partitions", 3, 0),
        of_two_clusters("odradek_offline_partitions", 0, 0),
        60, CLUSTER, "3 partitions of the cluster c1 have no leader",
    ),
    of_gauge(
        "OdradekUnderMinIsr", "odradek_under_min_isr_partitions", 2, 0, 120,
        "2 partitions that b1 leads are under min.insync.replicas",
    ),
    of_gauge(
        "OdradekUnderReplicated", "odradek_under_replicated_partitions", 4, 0, 600,
        "4 partitions that b1 leads lack replicas",
    ),
    of_gauge(
        "OdradekReplicationLag", "odradek_replication_lag_seconds", 90, 29, 300,
        "A follower of b1 has lagged for 1m 30s",
    ),
    of_gauge(
        "OdradekLogDirectoryFailed", "odradek_log_directory_failed", 1, 0, 0,
        "Log directory /disk of b1 failed", directory="/disk",
    ),
    of_gauge(
        "OdradekIsolated", "odradek_isolated", 1, 0, 30, "Broker b1 is cut off from its cluster and serves no clients"
    ),
    of_gauge(
        "OdradekZooKeeperDisconnected", "odradek_zookeeper_connected", 0, 1, 30,
        "Broker b1 has no connection to ZooKeeper",
    ),
    AlertCase(
        "OdradekEventLoopLag",
        histogram("odradek_event_loop_lag_seconds", LAG_BOUNDS, 60),  # longer than the longest bound
        histogram("odradek_event_loop_lag_seconds", LAG_BOUNDS, 0.2),
        660, {"instance": "b1"}, "The event loop of b1 is late by 5s",
    ),
    AlertCase(
        "OdradekSlowProduce",
        histogram("odradek_request_seconds", LATENCY_BOUNDS, 2, api="Produce"),
        histogram("odradek_request_seconds", LATENCY_BOUNDS, 0.9, api="Produce")
        | histogram("odradek_request_seconds", LATENCY_BOUNDS, 20, api="Fetch"),  # waits by design
        660, {"instance": "b1"}, "One produce request in a hundred takes more than a second on b1",
    ),
    AlertCase(
        "OdradekSlowFlush",
        histogram("odradek_log_flush_seconds", LATENCY_BOUNDS, 60),
        histogram("odradek_log_flush_seconds", LATENCY_BOUNDS, 2),
        660, {"instance": "b1"}, "One flush in a hundred takes more than 30s on b1",
    ),
    AlertCase(
        "OdradekFailedRequests",
        counter("odradek_request_errors_total", 1, api="Fetch", error="KAFKA_STORAGE_ERROR"),
        counter("odradek_request_errors_total", 0, api="Fetch", error="KAFKA_STORAGE_ERROR")
        | counter("odradek_request_errors_total", 9, api="Fetch", error="NOT_LEADER_OR_FOLLOWER"),
        360, {"instance": "b1", "api": "Fetch"}, "Fetch requests fail on b1",
    ),
    AlertCase(
        "OdradekAuthenticationFailures",
        counter("odradek_authentication_failures_total", 90, listener="SASL"),
        counter("odradek_authentication_failures_total", 30, listener="SASL"),
        805, {"instance": "b1", "listener": "SASL"}, "More than one authentication in a second fails on SASL of b1",
    ),
    AlertCase(
        "OdradekInSyncChanges",
        counter("odradek_isr_shrinks_total", 1),
        counter("odradek_isr_shrinks_total", 0.5),
        1205, {"instance": "b1"}, "In-sync sets led by b1 shrink again and again",
    ),
    AlertCase(
        "OdradekOpenFiles",
        gauge("process_open_fds", 900) | gauge("process_max_fds", 1000),
        gauge("process_open_fds", 700) | gauge("process_max_fds", 1000),
        300, BROKER, "b1 uses 90% of its file descriptors",
    ),
]  # fmt: skip


def promtool_file(rule_file: str, *, to_the_end: bool) -> str:
    """A file for `promtool test rules`: each alert fires in time and not one evaluation before, and is silent where all
    is well, until a minute after it would have fired or to the end of the series."""
    return yaml.safe_dump(
        {
            "rule_files": [rule_file],
            "evaluation_interval": f"{EVALUATION_S}s",
            "tests": [test for case in CASES for test in tests_of(case, to_the_end=to_the_end)],
        }
    )


def tests_of(case: AlertCase, *, to_the_end: bool) -> list[dict[str, Any]]:
    rule = RULES[case.alert]
    fired = {
        "exp_labels": {**case.labels, **rule["labels"]},
        "exp_annotations": {"summary": case.summary, "description": rule["annotations"]["description"]},
    }
    fires_s = case.fires_after_s
    silent_s = MINUTES * 60 if to_the_end else fires_s + 60
    early = [evaluation(case.alert, fires_s - EVALUATION_S)] if fires_s else []
    return [
        test_of(f"{case.alert} fires", case.failing, [*early, evaluation(case.alert, fires_s, fired)]),
        test_of(f"{case.alert} is silent", case.healthy, [evaluation(alert, silent_s) for alert in RULES]),
    ]


def test_of(name: str, series: Series, evaluations: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "name": name,
        "interval": "1m",
        "input_series": [{"series": series_, "values": values} for series_, values in series.items()],
        "alert_rule_test": evaluations,
    }


def evaluation(alert: str, at_s: int, *fired: dict[str, Any]) -> dict[str, Any]:
    return {"eval_time": f"{at_s}s", "alertname": alert, "exp_alerts": list(fired)}
