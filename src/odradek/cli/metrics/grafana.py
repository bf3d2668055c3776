"""The Grafana dashboard, built from a table of its panels. Pure.

A panel is `title | unit | legend | expression`; further lines that begin with `+` add expressions to it. A line that
begins with `#` starts a row of the dashboard, one with `=` a panel that shows a number instead of a graph.
"""

from __future__ import annotations

from typing import Any

COLUMNS = 24
GRAPH_WIDTH, GRAPH_HEIGHT = 8, 8
NUMBER_WIDTH, NUMBER_HEIGHT = 3, 4
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
UID = "odradek-brokers"

_PANELS = """
# Cluster
= Brokers that are ready | none | | sum(odradek_ready{B})
= Controllers | none | | sum(odradek_controller_active{B})
= Partitions without a leader | none | | max(odradek_offline_partitions{B})
= Under-replicated partitions | none | | sum(odradek_under_replicated_partitions{B})
= Under min ISR | none | | sum(odradek_under_min_isr_partitions{B})
= Failed log directories | none | | sum(odradek_log_directory_failed{B})
= Partitions | none | | sum(odradek_partitions{B})
= Open connections | none | | sum(odradek_connections{B})
# Traffic
Bytes in by topic | Bps | {{topic}} | sum by (topic) (rate(odradek_topic_bytes_in_total{B}[$__rate_interval]))
Bytes out by topic | Bps | {{topic}} | sum by (topic) (rate(odradek_topic_bytes_out_total{B}[$__rate_interval]))
Records in by topic | cps | {{topic}} | sum by (topic) (rate(odradek_topic_records_in_total{B}[$__rate_interval]))
Records out by topic | cps | {{topic}} | sum by (topic) (rate(odradek_topic_records_out_total{B}[$__rate_interval]))
Replication | Bps | {{instance}} in | rate(odradek_replication_bytes_in_total{B}[$__rate_interval])
+ {{instance}} out | rate(odradek_replication_bytes_out_total{B}[$__rate_interval])
Size of topics | bytes | {{topic}} | sum by (topic) (odradek_topic_size_bytes{B})
# Requests
Requests | reqps | {{api}} | sum by (api) (rate(odradek_requests_total{B}[$__rate_interval]))
Errors | cps | {{api}} {{error}} | sum by (api, error) (rate(odradek_request_errors_total{B}[$__rate_interval]))
Produce, 99th percentile | s | {{instance}} | histogram_quantile(0.99, sum by (le, instance) (rate(odradek_request_seconds_bucket{api="Produce",I}[$__rate_interval])))
Mean time of a produce request by stage | s | {{stage}} | sum by (stage) (rate(odradek_request_stage_seconds_total{api="Produce",I}[$__rate_interval])) / scalar(sum(rate(odradek_requests_total{api="Produce",I}[$__rate_interval])))
Mean time of a fetch request by stage | s | {{stage}} | sum by (stage) (rate(odradek_request_stage_seconds_total{api="Fetch",I}[$__rate_interval])) / scalar(sum(rate(odradek_requests_total{api="Fetch",I}[$__rate_interval])))
Slow and throttled requests | cps | slow {{api}} | sum by (api) (rate(odradek_slow_requests_total{B}[$__rate_interval]))
+ throttled {{api}} | sum by (api) (rate(odradek_throttled_requests_total{B}[$__rate_interval]))
# Replication
Changes of in-sync sets | cps | {{instance}} shrink | rate(odradek_isr_shrinks_total{B}[$__rate_interval])
+ {{instance}} expand | rate(odradek_isr_expands_total{B}[$__rate_interval])
Replication lag | none | {{instance}} | odradek_replication_lag_records{B}
Time that followers lag | s | {{instance}} | odradek_replication_lag_seconds{B}
Leader elections | cps | {{instance}} | rate(odradek_leader_elections_total{B}[$__rate_interval])
Partitions by broker | none | {{instance}} leads | odradek_leader_partitions{B}
+ {{instance}} replicas | odradek_partitions{B}
Failed partitions and isolated brokers | none | {{instance}} failed | odradek_failed_partitions{B}
+ {{instance}} isolated | odradek_isolated{B}
# Logs and coordinators
Size of logs | bytes | {{instance}} {{directory}} | odradek_log_size_bytes{B}
Flush, 99th percentile | s | {{instance}} | histogram_quantile(0.99, sum by (le, instance) (rate(odradek_log_flush_seconds_bucket{B}[$__rate_interval])))
Groups | none | {{kind}} {{state}} | sum by (kind, state) (odradek_groups{B})
Transactions | none | {{state}} | sum by (state) (odradek_transactions{B})
Coordinators | none | {{coordinator}} {{state}} | sum by (coordinator, state) (odradek_coordinator_shards{B})
Fetch sessions | none | {{instance}} | odradek_fetch_sessions{B}
# Connections and process
Connections | none | {{instance}} {{listener}} | odradek_connections{B}
+ {{instance}} {{listener}} throttled | odradek_throttled_connections{B}
Connections closed | cps | {{listener}} {{reason}} | sum by (listener, reason) (rate(odradek_connections_closed_total{B}[$__rate_interval]))
+ {{listener}} accepted | sum by (listener) (rate(odradek_connections_accepted_total{B}[$__rate_interval]))
Failed authentications | cps | {{instance}} {{listener}} | rate(odradek_authentication_failures_total{B}[$__rate_interval])
Event-loop lag, 99th percentile | s | {{instance}} | histogram_quantile(0.99, sum by (le, instance) (rate(odradek_event_loop_lag_seconds_bucket{B}[$__rate_interval])))
Processor | none | {{instance}} | rate(process_cpu_seconds_total{B}[$__rate_interval])
Memory | bytes | {{instance}} | process_resident_memory_bytes{B}
Open files | none | {{instance}} | process_open_fds{B} / process_max_fds{B}
ZooKeeper session | none | {{instance}} | odradek_zookeeper_connected{B}
Uptime | s | {{instance}} | odradek_uptime_seconds{B}
"""


def build_dashboard() -> dict[str, Any]:
    return {
        "uid": UID,
        "title": "Odradek brokers",
        "description": "Requests, traffic, replication, logs, coordinators and processes of Odradek brokers.",
        "tags": ["odradek", "kafka"],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "10s",
        "time": {"from": "now-1h", "to": "now"},
        "timezone": "browser",
        "annotations": {"list": []},
        "templating": {"list": [_datasource_variable(), _instance_variable()]},
        "panels": _panels(_PANELS),
    }


def _datasource_variable() -> dict[str, Any]:
    return {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus", "hide": 0}


def _instance_variable() -> dict[str, Any]:
    query = "label_values(odradek_build_info, instance)"
    return {
        "name": "instance",
        "label": "Broker",
        "type": "query",
        "datasource": DATASOURCE,
        "query": {"query": query, "refId": "instances"},
        "definition": query,
        "refresh": 2,
        "sort": 1,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all", "selected": True},
        "hide": 0,
    }


def _panels(table: str) -> list[dict[str, Any]]:
    panels: list[dict[str, Any]] = []
    x = y = height = 0
    for line in table.strip().splitlines():
        if line.startswith("+"):
            _add_target(panels[-1], *_cells(line[1:]))
            continue
        is_row, is_number = line.startswith("#"), line.startswith("=")
        width, own_height = (
            (COLUMNS, 1) if is_row else (NUMBER_WIDTH, NUMBER_HEIGHT) if is_number else (GRAPH_WIDTH, GRAPH_HEIGHT)
        )
        if is_row or x + width > COLUMNS:
            x, y, height = 0, y + height, 0
        place = {"x": x, "y": y, "w": width, "h": own_height}
        panels.append(_row(line[1:].strip(), place) if is_row else _panel(line.lstrip("= "), place, is_number))
        panels[-1]["id"] = len(panels)
        x, height = x + width, max(height, own_height)
    return panels


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.split(" | ")]


def _row(title: str, place: dict[str, int]) -> dict[str, Any]:
    return {"type": "row", "title": title, "gridPos": place, "collapsed": False, "panels": []}


def _panel(line: str, place: dict[str, int], is_number: bool) -> dict[str, Any]:
    title, unit, legend, expression = _cells(line.replace("| |", "|  |"))
    panel: dict[str, Any] = {
        "type": "stat" if is_number else "timeseries",
        "title": title,
        "gridPos": place,
        "datasource": DATASOURCE,
        "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []},
        "targets": [],
    }
    if is_number:
        panel["options"] = {"reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False}}
    else:
        panel["options"] = {
            "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
            "tooltip": {"mode": "multi", "sort": "desc"},
        }
    _add_target(panel, legend, expression)
    return panel


def _add_target(panel: dict[str, Any], legend: str, expression: str) -> None:
    chosen = 'instance=~"$instance"'
    panel["targets"].append(
        {
            "refId": chr(ord("A") + len(panel["targets"])),
            "datasource": DATASOURCE,
            "expr": expression.replace("{B}", f"{{{chosen}}}").replace(",I}", f",{chosen}}}"),
            "legendFormat": legend or "__auto",
        }
    )
