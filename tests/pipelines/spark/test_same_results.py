"""One pipeline with every kind of step has the same results on both brokers, with both engines.

What it must give is computed here in plain Python. Compared are contents: topics without ids and places, dead letters,
tables, views and files.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.pipelines.spark.stage import Stage, Written

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from odradek.testing import RunningBroker
    from tests.jvm.shared_kafka import KafkaAddress

pytestmark = pytest.mark.spark

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
DEFINITION = """
dead_letters: "@dead"
warehouse: sqlite:///w.db
sources:
  readings:
    topic: "@in"
    schema: "id BIGINT NOT NULL, pump BIGINT, at TIMESTAMP, pressure DOUBLE"
    columns: {sent: "cast(_headers[0].value as string)"}
    watermark: {column: at, delay: 10 minutes}
    tombstones: dead_letters
  pumps: {files: {path: pumps.csv, format: csv}, schema: "pump BIGINT, name STRING"}
steps:
  good:
    sql: select id, pump, at, pressure, sent, 'it''s' as word from readings where pump <> 3
    expect:
      plausible: {check: pressure between 0 and 400, otherwise: quarantine}
      not seven: {check: id <> 7, otherwise: drop}
  named: {sql: select * from good left join pumps using (pump)}
  loud: {from: [named], python: "same_steps:louder", schema: "id BIGINT, name STRING, sent STRING, word STRING"}
  unique: {from: good, deduplicate: {key: [id], within: 10 minutes}}
  minutes:
    from: good
    window: {column: at, size: 1 minute}
    by: [pump]
    aggregate: {events: count(*), highest: max(pressure)}
  met: {from: good, state: {key: [pump], processor: "same_steps:Met"}, schema: pump BIGINT}
sinks:
  loud: {from: loud, topic: "@loud", key: id, headers: {name: name}}
  unique: {from: unique, topic: "@unique", key: "concat('pump ', pump)", value: [id]}
  met: {from: met, topic: "@met", key: pump}
  minutes: {from: minutes, table: minutes, key: [pump, window_start]}
  archive: {from: named, files: {path: archive, format: json}}
views:
  last: {from: good, key: [pump], order_by: at}
"""
STEPS = """
from pyspark.sql import Row
from pyspark.sql import functions as F
from pyspark.sql.streaming import StatefulProcessor


def louder(frame):
    return frame.select("id", F.upper("name").alias("name"), "sent", "word")


class Met(StatefulProcessor):
    '''A row for each pump, the first time that it is heard of.'''

    def init(self, handle):
        self.seen = handle.getValueState("seen", "n BIGINT")

    def handleInputRows(self, key, rows, timerValues):
        if not self.seen.exists():
            self.seen.update((1,))
            yield Row(pump=key[0])
"""
NAMES = {1: "Ada", 2: "Bob"}
ONCE: list[dict[str, Any]] = [
    {
        "id": number,
        "pump": number % 6,
        "at": (NOON + timedelta(seconds=7 * number)).isoformat(),
        "pressure": float(number * 13 % 450),
    }
    for number in range(40)
]
READINGS = ONCE + ONCE[:5]
BROKEN = [b"{", b'{"id": "x"}', b'{"pump": 1}', None, b"[]"]
KINDS = ["not JSON", "does not fit the schema", "missing field", "no value", "does not fit the schema"]


def contents() -> dict[str, Any]:
    """The expected results of the pipeline."""
    read = [row for row in READINGS if row["pump"] != 3]
    refused = [row for row in read if not 0 <= row["pressure"] <= 400]
    good = [row for row in read if row not in refused and row["id"] != 7]
    minutes: dict[tuple[int, str], list[float]] = {}
    for row in good:
        minutes.setdefault((row["pump"], row["at"][11:16]), []).append(row["pressure"])
    return {
        "loud": counted(
            (str(row["id"]), loud(row), (("name", (NAMES.get(row["pump"]) or "").upper()),)) for row in good
        ),
        "unique": Counter({f"pump {row['pump']}/{row['id']}" for row in good}),
        "met": Counter({str(row["pump"]) for row in good}),
        "dead": counted(
            [(value, kind) for value, kind in zip(BROKEN, KINDS, strict=True)]
            + [(json.dumps(row).encode(), "expectation 'plausible' not met") for row in refused]
        ),
        "minutes": {key: (len(found), max(found)) for key, found in minutes.items()},
        "archive": Counter((row["id"], NAMES.get(row["pump"])) for row in good),
        "last": {row["pump"]: row["id"] for row in sorted(good, key=lambda row: row["at"])},
    }


def loud(row: dict[str, Any]) -> str:
    name = NAMES.get(row["pump"])
    return json.dumps({"id": row["id"], "name": name and name.upper(), "sent": "by test", "word": "it's"})


def counted(items: Iterable[Any]) -> Counter[Any]:
    return Counter(items)


def found(stage: Stage) -> dict[str, Any]:
    """The results of the pipeline."""

    def own_headers(record: Written) -> tuple[tuple[str, str], ...]:
        return tuple((name, value) for name, value in record.headers.items() if name != "odradek-id")

    with sqlite3.connect(stage.folder / "w.db") as connection:
        minutes = connection.execute("select pump, window_start, events, highest from minutes").fetchall()
        last = connection.execute("select pump, id from last").fetchall()
    files = [file.read_text() for file in (stage.folder / "archive").glob("*.json")]
    lines = [json.loads(line) for text in files for line in text.splitlines()]
    return {
        "loud": counted((record.key, json.dumps(record.json), own_headers(record)) for record in stage.read("loud")),
        "unique": counted(f"{record.key}/{record.json['id']}" for record in stage.read("unique")),
        "met": counted(record.key for record in stage.read("met")),
        "dead": counted(
            (record.value, record.headers["odradek-reason"].partition(":")[0]) for record in stage.read("dead")
        ),
        "minutes": {(pump, start[11:16]): (events, highest) for pump, start, events, highest in minutes},
        "archive": counted((line["id"], line.get("name")) for line in lines),
        "last": dict(last),
    }


@pytest.fixture(params=["odradek", pytest.param("apache_kafka", marks=[pytest.mark.jvm, pytest.mark.oracle])])
def servers(request: pytest.FixtureRequest) -> str:
    name = "odradek_session_broker" if request.param == "odradek" else "apache_kafka"
    running: RunningBroker | KafkaAddress = request.getfixturevalue(name)
    return running.bootstrap_servers


@pytest.mark.soak
@pytest.mark.timeout(300)
@pytest.mark.parametrize("engine", ["standard", "batch"])
def test_results_are_the_same(spark: SparkSession, servers: str, engine: str, tmp_path: Path) -> None:
    stage = Stage(spark, servers, tmp_path)
    (tmp_path / "same_steps.py").write_text(STEPS)
    (tmp_path / "pumps.csv").write_text("pump,name\n" + "".join(f"{pump},{name}\n" for pump, name in NAMES.items()))
    stage.create("in")
    for partition in (0, 1):
        stage.produce("in", [row for row in READINGS if row["pump"] % 2 == partition], partition=partition)
    stage.produce("in", BROKEN, partition=1)
    pipeline = stage.pipeline(DEFINITION)
    if engine == "batch":
        stage.run_once(pipeline)
    else:
        stage.run(pipeline, 240.0)
    assert found(stage) == contents()
