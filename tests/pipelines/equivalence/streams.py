"""Runs a case as a stream, or on the batch engine, with the path of production between given and collected records."""

from __future__ import annotations

import dataclasses
import json
import sqlite3
from collections import Counter
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from odradek.pipelines.definition.loading import Way, load_yaml
from odradek.pipelines.planning.rules import plan_again
from odradek.pipelines.spark.reading.record_files import written_records
from odradek.pipelines.spark.rehearsal.local_pipeline import with_local_ends
from odradek.pipelines.spark.rehearsal.rehearsal_planned import PlannedRehearsal
from odradek.pipelines.spark.rehearsal.streams import Rehearsal
from tests.pipelines.equivalence.cases import WRITTEN_AT
from tests.pipelines.equivalence.definitions import write_definition
from tests.pipelines.equivalence.outcomes import Outcome, last_of_each, plain_row

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from odradek.pipelines.definition.loading import Definition
    from tests.pipelines.equivalence.cases import Case, Record, Sink, Step


class Refused(Exception):
    """`validate` refuses the definition."""


class Run:
    """A run of a case on an engine."""

    def __init__(
        self, spark: SparkSession, case: Case, folder: Path, engine: str = "standard", way: Way = Way.OLD
    ) -> None:
        self._case = case
        self._folder = folder
        definition = checked(write_definition(case, folder, engine), way)
        pipeline = dataclasses.replace(with_local_ends(definition.require(), folder), spark={})
        self._plan = None if definition.plan is None else plan_again(pipeline)
        if self._plan is None:
            self._rehearsal = Rehearsal(spark, pipeline, folder)
        else:
            self._rehearsal = PlannedRehearsal(spark, self._plan, folder)

    def feed(self) -> None:
        for batch in self._case.batches:
            self._rehearsal.feed({name: [fields_of(name, each) for each in found] for name, found in batch.items()})
        self._rehearsal.run()

    def finish(self) -> None:
        self._rehearsal.finish()

    def before(self, flow: str) -> list[Step]:
        """The steps that the query of a flow computes."""
        if self._plan is None:
            ends = {f"files-{each.name}": each.input for each in self._case.sinks}
            ends |= {f"view-{each.name}": each.input for each in self._case.views}
            return self._case.upstream(ends.get(flow, flow.removesuffix("-changes").removesuffix("-views")))
        (root,) = (each.root for each in self._plan.flows if each.name == flow)
        names = {self._plan.shown(each) for each in self._plan.upstream(root)}
        return [each for each in self._case.steps if each.name in names]

    @property
    def written(self) -> dict[str, int]:
        """The reported rows of sinks and views."""
        return self._rehearsal.written

    def close(self) -> None:
        self._rehearsal.close()

    def outcome(self) -> Outcome:
        """What the sinks have."""
        made = Outcome()
        records = written_records(self._folder)
        for sink in self._case.sinks:
            rows = last_of_each(self._rows(sink, records), sink)
            made.rows[sink.name] = Counter(plain_row(row) for row in rows)
        for view in self._case.views:
            made.rows[view.name] = Counter(plain_row(row) for row in self._table(view.name))
        made.letters.update(letter_of(each) for each in records if each["topic"] == "dead")
        for violation in self._rehearsal.violations:
            if violation.rows:
                made.violations[violation.step, violation.expectation] += violation.rows
        made.late = Counter(self._rehearsal.late_rows)
        return made

    def _rows(self, sink: Sink, records: list[dict[str, Any]]) -> list[dict[str, Any]]:
        if sink.kind == "topic":
            return [value_of(each) for each in records if each["topic"] == sink.name]
        if sink.kind == "table":
            return self._table(sink.name)
        files = sorted((self._folder / "files" / sink.name).glob("*.parquet"))
        return [row for file in files for row in pq.read_table(file).to_pylist()]

    def _table(self, name: str) -> list[dict[str, Any]]:
        with closing(sqlite3.connect(self._folder / "warehouse.db")) as connection:
            if not connection.execute("select 1 from sqlite_master where name = ?", (name,)).fetchone():
                return []
            found = connection.execute(f'select * from "{name}"')
            names = [each[0] for each in found.description]
            return [dict(zip(names, row, strict=True)) for row in found]


def value_of(record: dict[str, Any]) -> dict[str, Any]:
    """The row of a record; of a tombstone its key."""
    return {"deleted": record["key"].decode()} if record["value"] is None else json.loads(record["value"])


def checked(file: Path, way: Way) -> Definition:
    definition = load_yaml(str(file), {"ODRADEK_PIPELINES": way})
    if not definition.is_sound:
        raise Refused("; ".join(map(str, definition.problems)))
    return definition


def fields_of(source: str, record: Record) -> dict[str, Any]:
    return {
        "key": None,
        "value": record.value,
        "topic": source,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": WRITTEN_AT,
        "timestampType": 0,
        "headers": [],
    }


def letter_of(record: dict[str, Any]) -> tuple[str, str, str | None]:
    headers = {each["key"]: (each["value"] or b"").decode() for each in record["headers"]}
    return headers["odradek-reason"].partition(":")[0], headers["odradek-step"], headers.get("odradek-source")
