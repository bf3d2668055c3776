"""One Spark session with Delta and Iceberg, which exist for PySpark 4.1 (`make lakehouse`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from odradek.pipelines.planning.loading import load_yaml
from odradek.pipelines.spark.sessions.jars import lakehouse_settings
from odradek.pipelines.spark.sessions.session import start_session

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from odradek.pipelines.definition.model import Pipeline

DEFINITION = """
pipeline: lake
checkpoints: checkpoints
spark:
  spark.sql.catalog.lake: org.apache.iceberg.spark.SparkCatalog
  spark.sql.catalog.lake.type: hadoop
  spark.sql.catalog.lake.warehouse: {warehouse}
  spark.sql.session.timeZone: UTC
  spark.sql.shuffle.partitions: "1"
  spark.databricks.delta.snapshotPartitions: "1"
  spark.sql.warehouse.dir: {warehouse}/spark
sources:
  rows:
    files: {{path: in, format: json, options: {{maxFilesPerTrigger: 1}}}}
    stream: true
    schema: "id BIGINT, region STRING, lsn BIGINT, value BIGINT, odradek_is_deleted BOOLEAN"
steps:
  once: {{from: rows, deduplicate: {{key: [id, region, lsn, value]}}}}
sinks:
  delta: {{from: once, lakehouse: {{format: delta, path: tables/appended, partition_by: [region]}}}}
  iceberg: {{from: once, lakehouse: {{format: iceberg, table: lake.db.appended, partition_by: [region]}}}}
  merged_delta: {{from: rows, lakehouse: {{format: delta, path: tables/merged, key: [id]}}}}
  merged_iceberg: {{from: rows, lakehouse: {{format: iceberg, table: lake.db.merged, key: [id]}}}}
"""


@pytest.fixture(scope="session")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("warehouse")


@pytest.fixture
def pipeline(tmp_path: Path, warehouse: Path) -> Pipeline:
    return defined(tmp_path, warehouse)


def defined(folder: Path, warehouse: Path) -> Pipeline:
    (folder / "pipeline.yml").write_text(DEFINITION.format(warehouse=warehouse))
    definition = load_yaml(str(folder / "pipeline.yml"), {})
    assert definition.is_sound, definition.problems
    assert definition.pipeline is not None
    return definition.pipeline


@pytest.fixture(scope="session")
def lake(tmp_path_factory: pytest.TempPathFactory, warehouse: Path) -> Iterator[SparkSession]:
    settings = lakehouse_settings(defined(tmp_path_factory.mktemp("settings"), warehouse), print)
    session = start_session("lakehouse", settings, "local[2]", has_connector=False)
    yield session
    session.stop()
