"""Delta and Iceberg tables: each batch once, and rows that replace those of their key."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from odradek.pipelines.definition.model import LakehouseTarget
from odradek.pipelines.planning.rules import plan_again
from odradek.pipelines.spark.engines.standard import StandardEngine
from odradek.pipelines.spark.writing.lakehouse import table_of
from odradek.pipelines.spark.writing.topics import Cluster
from tests.pipelines.spark.stage import catch_up

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from odradek.pipelines.definition.model import Pipeline
    from odradek.testing import RunningBroker

pytestmark = [
    pytest.mark.spark,
    pytest.mark.lakehouse,
    pytest.mark.timeout(900),
    # PySpark 4.1.1 leaves the sockets of collected rows to the garbage collector.
    pytest.mark.filterwarnings("ignore:unclosed.*socket:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def contents(session: SparkSession, target: LakehouseTarget, pipeline: Pipeline, *names: str) -> set[tuple[Any, ...]]:
    rows = session.table(table_of(session, target, pipeline).sql_name)
    found = [tuple(row) for row in rows.select(*(names or rows.columns)).collect()]
    assert len(found) == len(set(found))
    return set(found)


def test_a_pipeline_writes_each_batch_once(
    lake: SparkSession, pipeline: Pipeline, tmp_path: Path, odradek_session_broker: RunningBroker
) -> None:
    """The first batch is replayed: its commit is removed from the checkpoint, as if the process had died before it."""
    sinks = {each.name: each.target for each in pipeline.sinks}
    cluster = Cluster(odradek_session_broker.bootstrap_servers, {})

    def run(rows: list[dict[str, Any]], name: str) -> None:
        (tmp_path / "in").mkdir(exist_ok=True)
        (tmp_path / "in" / f"{name}.json").write_text("\n".join(map(json.dumps, rows)))
        catch_up(StandardEngine(lake, plan_again(pipeline), cluster))

    run([{"id": 1, "region": "n", "lsn": 1, "value": 1}, {"id": 2, "region": "s", "lsn": 2, "value": 2}], "a")
    commits = list((tmp_path / "checkpoints").glob("*/commits/[0-9]*"))
    assert len(commits) == 2
    for each in commits:
        each.unlink()
        each.with_name(f".{each.name}.crc").unlink(missing_ok=True)
    run([{"id": 1, "region": "n", "lsn": 3, "value": 3}], "b")
    for name in ("delta", "iceberg"):
        target = sinks[name]
        assert isinstance(target, LakehouseTarget)
        assert contents(lake, target, pipeline, "id", "value") == {(1, 1), (2, 2), (1, 3)}
    for name in ("merged_delta", "merged_iceberg"):
        target = sinks[name]
        assert isinstance(target, LakehouseTarget)
        assert contents(lake, target, pipeline, "id", "value") == {(2, 2), (1, 3)}
