"""Short messages from Spark's errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors.exceptions.captured import UnknownException

from odradek.pipelines.spark.sessions.failures import LONGEST, plain_message, plain_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WORKER = """An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "/x/lib/pyspark.zip/pyspark/worker.py", line 1, in main
    process()
  File "/my/rules.py", line 7, in handleInputRows
    raise ValueError("no such pump")
ValueError: no such pump
\tat org.apache.spark.api.python.BasePythonRunner.read(PythonRunner.scala:1)
"""


def test_conditions_states_and_plans_are_left_out() -> None:
    said = "[UNRESOLVED_COLUMN] A column `x` cannot be resolved. SQLSTATE: 42703;\n'Project ['x]"
    assert plain_text(said) == "A column `x` cannot be resolved."


def test_a_query_is_reported_by_its_cause() -> None:
    said = "[STREAM_FAILED] Query [id = 1] terminated with exception: java.io.IOException: disk full\n\tat a.B.c"
    assert plain_text(said) == "disk full"


def test_an_exception_of_the_user_is_reported_with_its_place() -> None:
    assert plain_text(WORKER) == 'ValueError: no such pump (File "/my/rules.py", line 7, in handleInputRows)'


def test_it_stays_short() -> None:
    assert len(plain_text("x" * 5000)) == LONGEST


@pytest.mark.spark
def test_a_failure_that_spark_awaited_is_reported_by_its_cause(spark: SparkSession) -> None:
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    futures = getattr(getattr(jvm, "scala.concurrent.Future$"), "MODULE$")
    failed = futures.failed(jvm.java.io.IOException("disk full"))
    at_most = jvm.scala.concurrent.duration.Duration.apply("10 s")
    with pytest.raises(Py4JJavaError, match="Exception thrown in awaitResult") as raised:
        jvm.org.apache.spark.util.ThreadUtils.awaitResult(failed, at_most)
    assert plain_message(raised.value) == "disk full"

    thrown = raised.value.java_exception
    of_query = UnknownException(desc=f"Query terminated with exception: {thrown}", stackTrace="", cause=thrown)
    assert plain_message(of_query) == "disk full"
