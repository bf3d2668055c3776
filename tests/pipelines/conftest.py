"""One Spark session for each worker of pytest, because a session takes seconds to start."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from odradek.pipelines.spark.sessions.session import start_session
from tests.pipelines.spark.stage import Stage

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from odradek.testing import RunningBroker

# The amounts of data are small: to compile their plans to Java would take longer than to interpret them. Spark compiles
# in tests that start it in a process of their own.
SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.default.parallelism": "4",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = start_session("tests", SETTINGS, "local[8]")  # the realtime engine runs all its tasks at once
    yield session
    session.stop()


@pytest.fixture
def stage(spark: SparkSession, odradek_session_broker: RunningBroker, tmp_path: Path) -> Stage:
    return Stage(spark, odradek_session_broker.bootstrap_servers, tmp_path)
