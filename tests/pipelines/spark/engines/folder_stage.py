"""Engines of plans on a folder of record files in place of a cluster."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from odradek.pipelines.planning.loading import load_yaml
from odradek.pipelines.planning.rules import plan_again
from odradek.pipelines.spark.engines.standard import StandardEngine, run_batch
from odradek.pipelines.spark.reading.record_files import add_records, source_folder, written_records
from odradek.pipelines.spark.rehearsal.local_pipeline import FolderCluster, with_local_ends
from odradek.pipelines.spark.writing.warehouse import warehouse

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from odradek.pipelines.planning.plan import Plan
    from odradek.pipelines.spark.computing.counts import BatchReport

SENT_AT = datetime(2026, 1, 1, tzinfo=UTC)


class FolderStage:
    """A plan whose topics, tables and files are in a folder."""

    def __init__(self, spark: SparkSession, folder: Path, definition: str) -> None:
        self._spark, self._folder, self._fed = spark, folder, 0
        file = folder / "pipeline.yml"
        file.write_text(definition)
        found = load_yaml(str(file), {})
        assert found.pipeline is not None
        self.plan: Plan = plan_again(with_local_ends(found.pipeline, folder))
        for source in self.plan.pipeline.sources:
            source_folder(folder, source.name).mkdir(parents=True, exist_ok=True)

    def feed(self, **given: Sequence[Any]) -> None:
        """Adds a batch: values of topics by the name of their source."""
        for source in self.plan.streams:
            records = [
                record_of(source.name, self._fed * 1000 + number, value)
                for number, value in enumerate(given.get(source.name, ()))
            ]
            add_records(self._folder, source.name, self._fed, records)
        self._fed += 1

    def run(self) -> list[BatchReport]:
        """Runs all flows until they have processed everything."""
        reports: list[BatchReport] = []
        engine = StandardEngine(self._spark, self.plan, FolderCluster(self._folder), reports.append)
        running = engine.start(until_caught_up=True)
        try:
            running.wait(lambda: False)
        finally:
            running.stop()
        return reports

    def run_once(self) -> BatchReport:
        """Computes everything as one batch."""
        return run_batch(self._spark, self.plan, FolderCluster(self._folder))

    def records(self, topic: str) -> list[Any]:
        """The values of a topic, in order."""
        written = (each for each in written_records(self._folder) if each["topic"] == topic)
        return [None if each["value"] is None else json.loads(each["value"]) for each in written]

    def rows(self, table: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self._folder / "warehouse.db")) as connection:
            return sorted(connection.execute(f'select * from "{table}"'), key=repr)

    def close(self) -> None:
        warehouse(f"sqlite:///{self._folder / 'warehouse'}.db").engine.dispose()


def record_of(topic: str, offset: int, value: Any) -> dict[str, Any]:
    return {
        "key": None, "value": value if isinstance(value, bytes) else json.dumps(value).encode(), "topic": topic,
        "partition": 0, "offset": offset, "timestamp": SENT_AT, "timestampType": 0, "headers": [],
    }  # fmt: skip
