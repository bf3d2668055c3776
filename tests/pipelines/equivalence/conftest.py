"""A session for many small queries."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# The cases are small: compiling their plans to Java would take longer than interpreting them.
SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


@pytest.fixture(scope="session")
def quick_spark(spark: SparkSession) -> SparkSession:
    own = spark.newSession()
    for key, value in SETTINGS.items():
        own.conf.set(key, value)
    return own
