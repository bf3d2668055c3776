"""`late: dead_letters` writes the rows that the watermark drops: each row is in a result or among the dead letters."""

from __future__ import annotations

import json
import random
import sqlite3
from typing import TYPE_CHECKING, Any

import pytest

from tests.pipelines.spark.file_batches import seconds_after_noon

if TYPE_CHECKING:
    from tests.pipelines.spark.stage import Stage

pytestmark = pytest.mark.spark

SOURCE = """
  {name}:
    topic: "@{name}"
    schema: "id BIGINT, k BIGINT, {time} TIMESTAMP"
    watermark: {{column: {time}, delay: 10 seconds, late: dead_letters}}
    max_records_per_batch: 8
"""
WINDOWS = f"""
warehouse: sqlite:///w.db
dead_letters: "@dead"
sources:
{SOURCE.format(name="views", time="at")}
steps:
  known: {{sql: "select id, k, at from views where k > 0"}}
  minutes: {{from: known, by: [k], window: {{column: at, size: 1 minute}}, aggregate: {{ids: collect_list(id)}}}}
  sessions: {{from: views, by: [k], window: {{column: at, gap: 20 s}}, aggregate: {{ids: collect_list(id)}}}}
sinks:
  minutes: {{from: minutes, table: minutes}}
  sessions: {{from: sessions, table: sessions}}
"""


def drawn(seed: int, batches: int) -> list[tuple[int, int, float]]:
    """Id, key and seconds of rows, of which some are late."""
    draw = random.Random(seed)
    return [
        (8 * batch + number, draw.choice((0, 1, 2)), batch * 40 + draw.choice((1, 1, 1, 8)) * draw.uniform(-30, 0))
        for batch in range(batches)
        for number in range(8)
    ]


def objects(rows: list[tuple[int, int, float]], time: str) -> list[dict[str, Any]]:
    return [{"id": number, "k": key, time: seconds_after_noon(at)} for number, key, at in rows]


def flush(batches: int) -> list[tuple[int, int, float]]:
    """Batches that advance the watermark past all rows."""
    return [(1000 + 8 * batch + number, 99, 10_000.0 * (batch + 1)) for batch in range(batches) for number in range(8)]


def dropped(stage: Stage, step: str) -> list[int]:
    """The ids of the dead letters of a step."""
    letters = [each for each in stage.read("dead") if each.headers["odradek-step"] == step]
    for each in letters:
        assert each.headers["odradek-reason"].startswith("late: event time 2026-01-01 1")
        assert " is before the watermark 2026-01-01 1" in each.headers["odradek-reason"]
        assert each.headers["odradek-id"].endswith(each.headers["odradek-source"])
    return [each.json["id"] for each in letters]


def kept(stage: Stage, table: str) -> list[int]:
    with sqlite3.connect(stage.folder / "w.db") as connection:
        rows = connection.execute(f"select ids from {table}").fetchall()
    return [number for (ids,) in rows for number in json.loads(ids) if number < 1000]


@pytest.mark.soak
def test_each_row_is_in_a_window_or_among_the_dead_letters(stage: Stage) -> None:
    rows = drawn(25, 4)
    stage.create("views", 1)
    stage.create("dead", 1)
    stage.produce("views", objects(rows + flush(3), "at"))
    stage.run(stage.pipeline(WINDOWS))
    minutes, sessions = dropped(stage, "minutes"), dropped(stage, "sessions")
    assert minutes
    assert sessions
    assert sorted(minutes + kept(stage, "minutes")) == [number for number, key, _ in rows if key > 0]
    assert sorted(sessions + kept(stage, "sessions")) == [number for number, _, _ in rows]


JOIN = f"""
warehouse: sqlite:///w.db
dead_letters: "@dead"
sources:
{SOURCE.format(name="shown", time="shown_at")}
{SOURCE.format(name="clicked", time="clicked_at")}
steps:
  clicks: {{sql: "select id as click, k, clicked_at from clicked"}}
  pairs: {{from: shown, join: {{stream: clicks, on: [k], within: 20 s, how: full}}}}
sinks:
  pairs: {{from: pairs, table: pairs}}
"""


@pytest.mark.soak
def test_each_row_is_in_a_join_or_among_the_dead_letters(stage: Stage) -> None:
    shown, clicked = drawn(4, 3), [(number + 500, key, at) for number, key, at in drawn(5, 3)]
    for name, rows in (("shown", shown), ("clicked", clicked)):
        stage.create(name, 1)
        stage.produce(name, objects(rows + flush(3), f"{name}_at"))
    stage.create("dead", 1)
    stage.run(stage.pipeline(JOIN))
    with sqlite3.connect(stage.folder / "w.db") as connection:
        found = connection.execute("select id, click from pairs").fetchall()
    joined = {number for row in found for number in row if number is not None and number < 1000}
    late = dropped(stage, "pairs")
    assert late
    assert not joined.intersection(late)
    assert sorted(joined | set(late)) == sorted(number for number, _, _ in shown + clicked)
    assert len(late) == len(set(late))
