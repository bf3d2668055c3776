"""Steps on a real broker: windows, and keyed state with timers."""

from __future__ import annotations

import sqlite3
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from odradek.pipelines.planning.rules import plan_again
from odradek.pipelines.spark.engines.standard import StandardEngine
from odradek.pipelines.spark.writing.topics import prepare_topics
from tests.pipelines.spark.stage import WAIT_S, Stage

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.spark

START = datetime(2026, 1, 1, 12, tzinfo=UTC)
SOURCE = """
warehouse: sqlite:///w.db
dead_letters: "@dead"
sources:
  readings:
    topic: "@in"
    schema: "id BIGINT, pump BIGINT, at TIMESTAMP, pressure DOUBLE"
    watermark: {column: at, delay: 10 seconds}
"""


def reading(number: int, pump: int, seconds: float, pressure: float) -> dict[str, Any]:
    return {
        "id": number,
        "pump": pump,
        "at": (START + timedelta(seconds=seconds)).isoformat(),
        "pressure": pressure,
    }


def table(stage: Stage, query: str) -> list[tuple[Any, ...]]:
    with sqlite3.connect(stage.folder / "w.db") as connection:
        return connection.execute(query).fetchall()


def await_true(condition: Callable[[], bool]) -> None:
    give_up_at = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < give_up_at
        time.sleep(0.1)  # a poll's pause


AGGREGATES = """
steps:
  minutes:
    from: readings
    window: {column: at, size: 1 minute}
    by: [pump]
    aggregate: {events: count(*), mean: avg(pressure)}
sinks:
  table: {from: minutes, table: minutes, key: [pump, window_start]}
  finished: {from: minutes, topic: "@finished", key: pump}
"""
ROWS = [
    reading(1, 1, 0, 10),
    reading(2, 1, 59, 20),
    reading(3, 2, 61, 30),
    reading(4, 1, 61, 5),
    reading(5, 1, 30, 7),
    reading(6, 3, 75, 1),  # ten seconds after the first minute, which it closes
]


def test_windows_are_written_while_they_change_and_when_they_are_final(stage: Stage) -> None:
    stage.create("in", 1)
    pipeline = stage.pipeline(SOURCE + AGGREGATES)
    stage.produce("in", ROWS[:3])
    stage.run(pipeline)
    assert stage.read("finished") == []
    stage.produce("in", ROWS[3:])
    stage.run(pipeline)
    minutes = table(stage, "select pump, window_start, events from minutes order by 1, 2")
    assert [(pump, start[11:16], events) for pump, start, events in minutes] == [
        (1, "12:00", 3),
        (1, "12:01", 1),
        (2, "12:01", 1),
        (3, "12:01", 1),
    ]
    assert [(record.key, record.json["events"]) for record in stage.read("finished")] == [("1", 3)]


PROCESSOR = """
from pyspark.sql import Row
from pyspark.sql.streaming import StatefulProcessor


class Silence(StatefulProcessor):
    def __init__(self, timeout_ms):
        self.timeout_ms = timeout_ms

    def init(self, handle):
        self.handle = handle
        self.seen = handle.getValueState("seen", "n BIGINT")

    def handleInputRows(self, key, rows, timerValues):
        count = sum(1 for _ in rows) + (self.seen.get()[0] if self.seen.exists() else 0)
        self.seen.update((count,))
        self.handle.registerTimer(timerValues.getCurrentProcessingTimeInMs() + self.timeout_ms)
        return iter(())

    def handleExpiredTimer(self, key, timerValues, expiredTimerInfo):
        if self.seen.exists():
            count = self.seen.get()[0]
            self.seen.clear()
            yield Row(pump=key[0], seen=count)
"""


@pytest.mark.soak
def test_keyed_state_keeps_time(stage: Stage) -> None:
    stage.create("in", 1)
    (stage.folder / "own_rules.py").write_text(PROCESSOR)
    pipeline = stage.pipeline(
        SOURCE
        + """
steps:
  silent:
    from: readings
    state: {key: [pump], processor: "own_rules:Silence", timeout: 1 s}
    schema: pump BIGINT, seen BIGINT
sinks: {out: {from: silent, topic: "@out", key: pump}}
"""
    )
    stage.produce("in", [reading(1, 1, 0, 1), reading(2, 1, 1, 1), reading(3, 2, 1, 1)])
    running = StandardEngine(stage.spark, plan_again(pipeline), prepare_topics(pipeline)).start()
    try:

        def is_reported() -> bool:
            running.raise_failure()
            return len(stage.read("out")) == 2

        await_true(is_reported)
    finally:
        running.stop()
    assert {record.key: record.json["seen"] for record in stage.read("out")} == {"1": 2, "2": 1}
