"""The state of joins of streams: it is read by further joins, bounded, and continued by the next run.

The source of each side is a folder of files, of which each is a micro-batch.
"""

from __future__ import annotations

import json
import sqlite3
from typing import TYPE_CHECKING, Any

import pytest

from odradek.pipelines.planning.rules import plan_again
from odradek.pipelines.spark.engines.flow_queries import COUNTED_ROWS
from odradek.pipelines.spark.engines.standard import StandardEngine
from odradek.pipelines.spark.writing.topics import prepare_topics
from tests.pipelines.spark.file_batches import give_files, seconds_after_noon
from tests.pipelines.spark.stage import WAIT_S

if TYPE_CHECKING:
    from tests.pipelines.spark.stage import Stage

pytestmark = pytest.mark.spark

WITHIN_S, DELAY_S = 20, 30
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
Row = tuple[int | None, int, float | None]  # id, number, seconds


def as_objects(rows: list[Row], name: str) -> list[dict[str, Any]]:
    return [{"id": a, name: b, f"{name}_at": None if c is None else seconds_after_noon(c)} for a, b, c in rows]


BEHIND = f"""
steps:
  pairs: {{from: shown, join: {{stream: clicked, on: [id], within: {WITHIN_S} s, how: left}}}}
  shown_once: {{sql: "select id, shown_at from pairs"}}
  once: {{from: shown_once, deduplicate: {{key: [id, shown_at], within: 5 minutes}}}}
  counts: {{from: pairs, window: {{column: shown_at, size: 1 minute}}, aggregate: {{n: count(*), c: count(clicked)}}}}
  again: {{sql: "select id, clicked as other, clicked_at as other_at from clicked"}}
  triples: {{from: pairs, join: {{stream: again, on: [id], within: {WITHIN_S} s, how: left}}}}
sinks:
  once: {{from: once, table: once}}
  counts: {{from: counts, table: counts}}
  triples: {{from: triples, table: triples}}
"""


@pytest.mark.more
def test_a_join_has_state_behind_it(stage: Stage) -> None:
    """The last rows advance the watermark past the others."""
    shown: list[list[Row]] = [[(1, 1, 0.0), (2, 2, 5.0), (2, 3, 70.0)]]
    clicked: list[list[Row]] = [[(1, 1, 4.0)], [(1, 2, 19.0)]]
    for name, id_, batches in (("shown", 99, shown), ("clicked", 98, clicked)):
        last: list[list[Row]] = [[(id_, n, 1000.0 * n)] for n in (1, 2, 3)]
        give_files(stage.folder / name, [as_objects(rows, name) for rows in (*batches, *last)])
    stage.run(stage.pipeline(SOURCES + BEHIND))
    with sqlite3.connect(stage.folder / "w.db") as connection:
        once = connection.execute("select id from once where id < 90").fetchall()
        counts = connection.execute("select n, c from counts order by window_start").fetchall()
        triples = connection.execute("select id, shown, clicked, other from triples where id < 90").fetchall()
    assert sorted(once) == [(1,), (2,), (2,)]
    assert counts[:2] == [(3, 2), (1, 0)]
    pairs = [(1, 1, clicked, other) for clicked in (1, 2) for other in (1, 2)]
    assert sorted(triples) == [*pairs, (2, 2, None, None), (2, 3, None, None)]


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
