"""Joins of streams give the rows that a batch gives, however the records fall into batches.

The source of each side is a folder of files, of which each is a micro-batch. The expected rows are computed in Python.
"""

from __future__ import annotations

import json
import random
import sqlite3
from typing import TYPE_CHECKING, Any

import pytest

from odradek.pipelines.planning.rules import plan_again
from odradek.pipelines.spark.engines.settings import COUNTED_ROWS
from odradek.pipelines.spark.engines.standard import StandardEngine
from odradek.pipelines.spark.writing.topics import prepare_topics
from tests.pipelines.spark.file_batches import NOON, give_files, seconds_after_noon
from tests.pipelines.spark.stage import WAIT_S

if TYPE_CHECKING:
    from tests.pipelines.spark.stage import Stage

pytestmark = pytest.mark.spark

WITHIN_S, DELAY_S = 20, 30
KINDS = ("inner", "left", "right", "full")
SOURCES = f"""
warehouse: sqlite:///w.db
sources:
  shown:
    files: {{path: shown, format: json, options: {{maxFilesPerTrigger: 1}}}}
    stream: true
    schema: "id BIGINT, shown BIGINT, shown_at TIMESTAMP"
    watermark: {{column: shown_at, delay: {DELAY_S} seconds}}
  clicked:
    files: {{path: clicked, format: json, options: {{maxFilesPerTrigger: 1}}}}
    stream: true
    schema: "id BIGINT, clicked BIGINT, clicked_at TIMESTAMP"
    watermark: {{column: clicked_at, delay: {DELAY_S} seconds}}
"""
SQL_JOIN = (
    "select coalesce(shown.id, clicked.id) as id, shown, clicked from shown HOW join clicked on shown.id = clicked.id "
    f"and clicked_at between shown_at - interval {WITHIN_S} seconds and shown_at + interval {WITHIN_S} seconds"
)
Row = tuple[int | None, int, float | None]  # id, number, seconds


def drawn_side(seed: random.Random, batches: int) -> list[list[Row]]:
    """Rows of a few ids out of order, none of them late; some have no id or no event time."""
    numbers = iter(range(1000))
    found = []
    for batch in range(batches):
        rows: list[Row] = []
        for number in [next(numbers) for _ in range(8)]:
            at = batch * 25 + seed.uniform(-DELAY_S / 2, DELAY_S / 2 - 1)
            rows.append((seed.choice((1, 2, 3, 4, None)), number, seed.choice((at, at, at, round(at, -1), None))))
        found.append(rows)
    return found


def matches(left: Row, right: Row) -> bool:
    if left[0] is None or left[0] != right[0] or left[2] is None or right[2] is None:
        return False
    return abs(left[2] - right[2]) <= WITHIN_S


def joined(lefts: list[list[Row]], rights: list[list[Row]], how: str) -> set[tuple[Any, ...]]:
    """The rows of a batch: id, number of the left, number of the right. Rows without event time are dead letters."""
    left, right = ([row for batch in side for row in batch if row[2] is not None] for side in (lefts, rights))
    found: set[tuple[Any, ...]] = {(a[0], a[1], b[1]) for a in left for b in right if matches(a, b)}
    if how in {"left", "full"}:
        found |= {(a[0], a[1], None) for a in left if not any(matches(a, b) for b in right)}
    if how in {"right", "full"}:
        found |= {(b[0], None, b[1]) for b in right if not any(matches(a, b) for a in left)}
    return found


def as_objects(rows: list[Row], name: str) -> list[dict[str, Any]]:
    return [{"id": a, name: b, f"{name}_at": None if c is None else seconds_after_noon(c)} for a, b, c in rows]


def written(stage: Stage, table: str) -> list[tuple[Any, ...]]:
    with sqlite3.connect(stage.folder / "w.db") as connection:
        return connection.execute(f"select id, shown, clicked from {table} where coalesce(id, 0) < 90").fetchall()


@pytest.mark.parametrize("kinds", [("full",), pytest.param(KINDS, marks=pytest.mark.soak)], ids=["full", "all kinds"])
def test_a_stream_and_a_batch_join_the_same_rows(stage: Stage, kinds: tuple[str, ...]) -> None:
    draw = random.Random(1)
    left, right = drawn_side(draw, 3), drawn_side(draw, 3)
    ends: list[list[Row]] = [[(99, 900 + n, 1000.0 * n)] for n in range(1, 4)]  # advance the watermark past all rows
    give_files(stage.folder / "shown", [as_objects(rows, "shown") for rows in left + ends])
    give_files(stage.folder / "clicked", [as_objects(rows, "clicked") for rows in right + ends])
    steps = "".join(
        f"  {how}_join: {{from: shown, join: {{stream: clicked, on: [id], within: {WITHIN_S} s, how: {how}}}}}\n"
        f'  {how}_sql: {{sql: "{SQL_JOIN.replace("HOW", how)}"}}\n'
        for how in kinds
    )
    sinks = "".join(
        f"  {how}_{way}: {{from: {how}_{way}, table: {how}_{way}}}\n" for how in kinds for way in ("join", "sql")
    )
    stage.run(stage.pipeline(f"{SOURCES}steps:\n{steps}sinks:\n{sinks}"))
    for how, way in ((how, way) for how in kinds for way in ("join", "sql")):
        rows = written(stage, f"{how}_{way}")
        assert set(rows) == joined(left, right, how), (how, way)
        assert len(rows) == len(set(rows)), (how, way)


BEHIND = f"""
steps:
  pairs: {{from: shown, join: {{stream: clicked, on: [id], within: {WITHIN_S} s, how: left}}}}
  shown_once: {{sql: "select id, shown_at from pairs"}}
  once: {{from: shown_once, deduplicate: {{key: [id, shown_at], within: 5 minutes}}}}
  counts: {{from: pairs, window: {{column: shown_at, size: 1 minute}}, aggregate: {{n: count(*), c: count(clicked)}}}}
sinks:
  once: {{from: once, table: once}}
  counts: {{from: counts, table: counts}}
"""


JOINS = f"""
steps:
  pairs: {{from: shown, join: {{stream: clicked, on: [id], within: {WITHIN_S} s, how: left}}}}
  again: {{sql: "select id, clicked as other, clicked_at as other_at from clicked"}}
  triples: {{from: pairs, join: {{stream: again, on: [id], within: {WITHIN_S} s, how: left}}}}
sinks: {{o: {{from: triples, table: o}}}}
"""


def test_a_join_of_streams_is_joined_with_another_stream(stage: Stage) -> None:
    ends = [as_objects([(99, n, 1000.0 * n)], "shown") for n in (1, 2, 3)]
    give_files(stage.folder / "shown", [as_objects([(1, 1, 0), (2, 2, 5)], "shown"), *ends])
    ends = [as_objects([(98, n, 1000.0 * n)], "clicked") for n in (1, 2, 3)]
    give_files(stage.folder / "clicked", [as_objects([(1, 1, 4)], "clicked"), *ends])
    stage.run(stage.pipeline(SOURCES + JOINS))
    with sqlite3.connect(stage.folder / "w.db") as connection:
        found = connection.execute("select id, shown, clicked, other from o where id < 90 order by id").fetchall()
    assert found == [(1, 1, 1, 1), (2, 2, None, None)]


@pytest.mark.soak
def test_windows_and_deduplication_behind_a_join(stage: Stage) -> None:
    give_files(
        stage.folder / "shown",
        [as_objects([(1, 1, 0), (2, 2, 5), (2, 3, 70)], "shown")]
        + [as_objects([(99, n, 1000.0 * n)], "shown") for n in (1, 2, 3)],
    )
    give_files(
        stage.folder / "clicked",
        [as_objects([(1, 1, 4)], "clicked"), as_objects([(1, 2, 19)], "clicked")]
        + [as_objects([(98, n, 1000.0 * n)], "clicked") for n in (1, 2, 3)],
    )
    stage.run(stage.pipeline(SOURCES + BEHIND))
    with sqlite3.connect(stage.folder / "w.db") as connection:
        once = connection.execute("select id from once where id < 90").fetchall()
        counts = connection.execute("select window_start, n, c from counts order by 1").fetchall()
    assert sorted(once) == [(1,), (2,), (2,)]
    assert [(n, c) for _, n, c in counts][:2] == [(3, 2), (1, 0)]
    assert NOON.strftime("%H:%M") in str(counts[0][0])


@pytest.mark.soak
@pytest.mark.parametrize("is_counted", [True, False], ids=["counted", "not counted"])
def test_the_state_of_a_join_is_bounded(stage: Stage, is_counted: bool) -> None:
    """Rows that can match no more are removed: after the watermark has passed, a few rows remain.

    By default they are not counted, so that RocksDB looks up no keys."""
    rows: list[list[Row]] = [[(n, n, batch * 100.0 + n) for n in range(10)] for batch in range(6)]
    give_files(stage.folder / "shown", [as_objects(each, "shown") for each in rows])
    give_files(stage.folder / "clicked", [as_objects(each, "clicked") for each in rows])
    text = f"steps: {{s: {{from: shown, join: {{stream: clicked, on: [id], within: {WITHIN_S} s}}}}}}\n"
    spark = f"spark: {{{COUNTED_ROWS}: true}}\n" if is_counted else ""
    pipeline = stage.pipeline(SOURCES + text + "sinks: {o: {from: s, table: o}}\n" + spark)
    running = StandardEngine(stage.spark, plan_again(pipeline), prepare_topics(pipeline)).start(until_caught_up=True)
    try:
        query = running.queries["s"]
        assert query.awaitTermination(int(WAIT_S))
        assert query.lastProgress is not None
        operators = query.lastProgress.stateOperators
        every = [each for batch in query.recentProgress for each in batch.stateOperators]
        assert 0 < sum(each.numRowsUpdated - each.numRowsRemoved for each in every) <= 40  # of 120
        assert (0 < sum(each.numRowsTotal for each in operators) <= 40) == is_counted
        assert (sum(int(each.customMetrics["rocksdbGetCount"]) for each in every) > 0) == is_counted
        assert sum(each.numRowsDroppedByWatermark for each in operators) == 0
    finally:
        running.stop()


@pytest.mark.soak
def test_a_checkpoint_is_continued_whether_its_rows_are_counted_or_not(stage: Stage) -> None:
    """Rows of one run are joined with rows of the next, whose state is counted, not counted, and counted again."""
    runs: list[tuple[Row, Row, bool]] = [
        ((1, 10, 0.0), (9, 90, 0.0), True),
        ((9, 91, 2.0), (1, 11, 3.0), False),
        ((8, 80, 4.0), (9, 92, 5.0), True),
        ((7, 70, 6.0), (8, 81, 7.0), False),
    ]
    for name in ("shown", "clicked"):
        (stage.folder / name).mkdir()
    text = f"steps: {{s: {{from: shown, join: {{stream: clicked, on: [id], within: {WITHIN_S} s}}}}}}\n"
    for number, (left, right, is_counted) in enumerate(runs):
        for name, row in (("shown", left), ("clicked", right)):
            (stage.folder / name / f"{number}.json").write_text(json.dumps(as_objects([row], name)[0]))
        spark = f"spark: {{{COUNTED_ROWS}: true}}\n" if is_counted else ""
        stage.run(stage.pipeline(SOURCES + text + "sinks: {o: {from: s, table: o}}\n" + spark))
    with sqlite3.connect(stage.folder / "w.db") as connection:
        rows = connection.execute("select id, shown, clicked from o").fetchall()
    assert sorted(rows) == [(1, 10, 11), (8, 80, 81), (9, 91, 90), (9, 91, 92)]


def test_the_batch_engine_joins_the_same_rows(stage: Stage) -> None:
    draw = random.Random(7)
    left, right = drawn_side(draw, 3), drawn_side(draw, 3)
    give_files(stage.folder / "shown", [as_objects(rows, "shown") for rows in left])
    give_files(stage.folder / "clicked", [as_objects(rows, "clicked") for rows in right])
    text = f"steps: {{s: {{from: shown, join: {{stream: clicked, on: [id], within: {WITHIN_S} s, how: full}}}}}}\n"
    stage.run_once(stage.pipeline(f"engine: batch{SOURCES}{text}sinks: {{o: {{from: s, table: o}}}}\n"))
    rows = written(stage, "o")
    assert sorted(map(str, rows)) == sorted(map(str, joined(left, right, "full")))
