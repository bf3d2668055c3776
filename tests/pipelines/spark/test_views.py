"""Views that are read while the stream runs: each read returns the result of a prefix of each partition's records."""

from __future__ import annotations

import itertools
import threading
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa

from odradek.pipelines.spark.writing.databases import reading

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.pipelines.spark.stage import Stage

pytestmark = pytest.mark.spark

DEFINITION = """
    warehouse: sqlite:///w.db
    sources: {rows: {topic: "@in", schema: "id BIGINT, pump BIGINT, kind BIGINT", max_records_per_batch: 12}}
    views:
      latest: {from: rows, key: [pump], order_by: id}
      kinds: {from: rows, key: [kind], order_by: id}
      totals: {from: rows, by: [pump], aggregate: {events: count(*), added: sum(id)}}
      whole: {from: rows, aggregate: {events: count(*), added: sum(id)}}
"""
QUERIES = {
    "latest": "select pump, id from latest",
    "kinds": "select kind, id from kinds",
    "totals": "select pump, events, added from totals",
    "whole": "select events, added from whole",
}
ROWS = [{"id": number, "pump": number % 5, "kind": number % 7 % 3} for number in range(80)]
PARTITIONS = ([row for row in ROWS if row["id"] % 4], [row for row in ROWS if row["id"] % 4 == 0])
LOOK_S = 0.03

Rows = frozenset[tuple[int, ...]]
Reading = dict[str, Rows]


def latest_of(rows: Iterable[dict[str, int]]) -> tuple[Rows, Rows]:
    """Both views of latest rows, which belong to one flow and change together."""
    ordered = sorted(rows, key=lambda row: row["id"])
    pumps, kinds = ({row[key]: row["id"] for row in ordered} for key in ("pump", "kind"))
    return frozenset(pumps.items()), frozenset(kinds.items())


def totals_of(rows: Iterable[dict[str, int]]) -> Rows:
    found: dict[int, tuple[int, int]] = {}
    for row in rows:
        events, added = found.get(row["pump"], (0, 0))
        found[row["pump"]] = (events + 1, added + row["id"])
    return frozenset((pump, *figures) for pump, figures in found.items())


def whole_of(rows: list[dict[str, int]]) -> Rows:
    """The view of one group, which has no row before its first batch."""
    return frozenset([(len(rows), sum(row["id"] for row in rows))] if rows else ())


def prefixes() -> Iterable[list[dict[str, int]]]:
    lengths = itertools.product(*(range(len(rows) + 1) for rows in PARTITIONS))
    return ([row for rows, end in zip(PARTITIONS, ends, strict=True) for row in rows[:end]] for ends in lengths)


def read_views(connection: sa.Connection) -> Reading:
    """Reads the views in one transaction; a view that no batch has written is empty."""
    there = set(sa.inspect(connection).get_table_names())

    def rows(name: str) -> Any:
        return connection.execute(sa.text(QUERIES[name])) if name in there else ()

    return {name: frozenset(tuple(row) for row in rows(name)) for name in QUERIES}


class Reader(threading.Thread):
    """Reads continuously and keeps each new result."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self._url, self._is_over = url, threading.Event()
        self.readings: list[Reading] = [dict.fromkeys(QUERIES, frozenset())]

    def run(self) -> None:
        while not self._is_over.wait(LOOK_S):
            self.look()

    def look(self) -> None:
        with reading(self._url) as connection:
            found = read_views(connection)
        if found != self.readings[-1]:
            self.readings.append(found)

    def end(self) -> None:
        self._is_over.set()
        self.join()


@pytest.mark.timeout(300)
@pytest.mark.soak
def test_every_reading_is_of_a_prefix(stage: Stage) -> None:
    stage.create("in", len(PARTITIONS))
    for partition, rows in enumerate(PARTITIONS):
        stage.produce("in", rows, partition=partition)
    pipeline = stage.pipeline(DEFINITION)
    reader = Reader(f"sqlite:///{stage.folder}/w.db")
    reader.start()
    try:
        stage.run(pipeline)
    finally:
        reader.end()
    reader.look()
    every_latest = {latest_of(rows) for rows in prefixes()}
    every_totals = {totals_of(rows) for rows in prefixes()}
    every_whole = {whole_of(rows) for rows in prefixes()}
    for found in reader.readings:
        assert (found["latest"], found["kinds"]) in every_latest
        assert found["totals"] in every_totals
        assert found["whole"] in every_whole
    last = reader.readings[-1]
    assert ((last["latest"], last["kinds"]), last["totals"]) == (latest_of(ROWS), totals_of(ROWS))
    assert last["whole"] == whole_of(ROWS)
    for name in QUERIES:
        assert len({found[name] for found in reader.readings}) > 2, "nothing was read while the stream ran"
