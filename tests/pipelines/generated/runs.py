"""Runs a case as a stream, or on the batch engine, with the path of production between given and collected records."""

from __future__ import annotations

import json
import sqlite3
import traceback
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from odradek.pipelines.planning.loading import load_yaml
from odradek.pipelines.planning.rules import plan_again
from odradek.pipelines.spark.engines.running import LATE_WORKER
from odradek.pipelines.spark.reading.record_files import written_records
from odradek.pipelines.spark.rehearsal.local_pipeline import with_local_ends
from odradek.pipelines.spark.rehearsal.rehearsal import Rehearsal
from odradek.pipelines.spark.sessions.failures import PipelineError
from tests.pipelines.generated.definitions import LABELS, PROCESSORS
from tests.pipelines.generated.oracle import Outcome
from tests.pipelines.generated.outcomes import described, differences
from tests.pipelines.generated.records import START

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from odradek.pipelines.definition.model import Pipeline
    from tests.pipelines.generated.drawing import Case
    from tests.pipelines.generated.ends import End
    from tests.pipelines.generated.records import Batches, Record


class Overloaded(Exception):
    """Spark gave up a Python process that did not connect in time, because the machine was busy."""


def check_case(spark: SparkSession, case: Case, batches: Batches, engine: str, folder: Path) -> list[str]:
    """The differences between a run of a case and the oracle, with the case; empty if there are none."""
    expected = case.outcome(batches, is_stream=engine != "batch")
    with closing(Run(spark, case, folder, engine)) as run:
        try:
            run.feed(batches)
        except PipelineError as error:
            if LATE_WORKER in str(error):
                raise Overloaded(str(error)) from error
            reported = stopped(expected, str(error))
        except Exception as error:  # reported with the case
            reported = traceback.format_exception(error, limit=-4)
        else:
            rule = expected.stopped[0][1] if expected.stopped else None
            reported = differences(case, expected, run.outcome()) if rule is None else [f"not stopped by {rule}"]
    return [described(case, batches, [f"{engine}: {each}" for each in reported])] if reported else []


def stopped(expected: Outcome, message: str) -> list[str]:
    """An expectation may stop the pipeline, whose message names it."""
    is_named = any(f"'{rule}'" in message for _, rule in expected.stopped)
    return [] if is_named else [f"stopped: {message}"]


class Run:
    """A run of a case on an engine."""

    def __init__(self, spark: SparkSession, case: Case, folder: Path, engine: str) -> None:
        self._case, self._folder = case, folder
        self._plan = plan_again(replace(with_local_ends(self._pipeline(engine), folder), spark={}))
        self._rehearsal = Rehearsal(spark, self._plan, folder)

    def _pipeline(self, engine: str) -> Pipeline:
        (self._folder / "processors.py").write_text(PROCESSORS)
        labels = "".join(json.dumps({"k": k, "label": label}) + "\n" for k, label in LABELS)
        (self._folder / "labels.json").write_text(labels)
        file = self._folder / "pipeline.yml"
        file.write_text(f"engine: {engine}\n{self._case.text}")
        return load_yaml(str(file), {}).require()

    def feed(self, batches: Batches) -> None:
        for batch in batches:
            self._rehearsal.feed({name: [fields_of(name, each) for each in found] for name, found in batch.items()})
        self._rehearsal.run()
        self._rehearsal.finish()

    def close(self) -> None:
        self._rehearsal.close()

    def outcome(self) -> Outcome:
        """What the ends have."""
        made = Outcome()
        records = written_records(self._folder)
        made.rows = {each.name: self._rows(each, records) for each in self._case.ends}
        made.letters.update(letter_of(each) for each in records if each["topic"] == "dead")
        for each in self._rehearsal.violations:
            made.violations[each.step, each.expectation] += each.rows
        made.late.update(self._rehearsal.late_rows)
        return made

    def _rows(self, end: End, records: list[dict[str, Any]]) -> list[dict[str, Any]]:
        if end.kind == "topic":
            return [value_of(each) for each in records if each["topic"] == end.name]
        if end.kind == "table":
            return self._table(end.name)
        files = sorted((self._folder / "files" / end.name).glob("*.parquet"))
        return [row for file in files for row in pq.read_table(file, coerce_int96_timestamp_unit="us").to_pylist()]

    def _table(self, name: str) -> list[dict[str, Any]]:
        with closing(sqlite3.connect(self._folder / "warehouse.db")) as connection:
            if not connection.execute("select 1 from sqlite_master where name = ?", (name,)).fetchone():
                return []
            found = connection.execute(f'select * from "{name}"')
            names = [each[0] for each in found.description]
            return [dict(zip(names, row, strict=True)) for row in found]


def value_of(record: dict[str, Any]) -> dict[str, Any]:
    """The row of a record; of a tombstone its key."""
    if record["value"] is not None:
        return dict(json.loads(record["value"]))
    return {"deleted": None if record["key"] is None else record["key"].decode()}


def letter_of(record: dict[str, Any]) -> tuple[str, str, str | None]:
    headers = {each["key"]: (each["value"] or b"").decode() for each in record["headers"]}
    return headers["odradek-reason"].partition(":")[0], headers["odradek-step"], headers.get("odradek-source")


def fields_of(source: str, record: Record) -> dict[str, Any]:
    return {
        "key": None,
        "value": record.value,
        "topic": source,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": START,
        "timestampType": 0,
        "headers": [],
    }
