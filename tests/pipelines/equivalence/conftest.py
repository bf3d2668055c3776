"""A session whose settings the tests of this folder change."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def own_spark(spark: SparkSession) -> SparkSession:
    return spark.newSession()
