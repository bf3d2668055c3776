"""Short messages from errors of Spark, and the failures after which a retry may succeed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import sqlalchemy as sa
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException
from pyspark.errors.exceptions.captured import UnknownException

from odradek.pipelines.operating.backoff import Retry
from odradek.pipelines.spark.engines.running import PipelineFailed
from odradek.pipelines.spark.resuming import CheckpointRefused
from odradek.pipelines.spark.sessions.failures import (
    LONGEST,
    PipelineError,
    SparkProcessEnded,
    plain_message,
    plain_text,
    retry_of,
)
from odradek.pipelines.spark.sessions.session import JavaMissing
from odradek.pipelines.spark.writing.databases import WarehouseRefused, WarehouseUnavailable
from odradek.pipelines.spark.writing.topics import BrokersUnavailable

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


EXPECTED = [
    (CheckpointRefused("changed"), Retry.NEVER),
    (JavaMissing("no Java"), Retry.NEVER),
    (WarehouseRefused("no column"), Retry.NEVER),
    (WarehouseUnavailable("database is locked"), Retry.LIKELY),
    (AnalysisException("no such column"), Retry.NEVER),
    (BrokersUnavailable("no broker"), Retry.LIKELY),
    (SparkProcessEnded("gone"), Retry.LIKELY),
    (sa.exc.OperationalError("insert", {}, Exception("disk full")), Retry.LIKELY),
    (RuntimeError("org.apache.kafka.common.errors.TimeoutException: expired"), Retry.LIKELY),
    (RuntimeError("[USER_RAISED_EXCEPTION] a row does not meet it, which stops the pipeline"), Retry.NEVER),
    (ZeroDivisionError("in a step"), Retry.PERHAPS),
]


@pytest.mark.parametrize(("cause", "retry"), EXPECTED, ids=lambda each: type(each).__name__)
def test_the_cause_decides(cause: BaseException, retry: Retry) -> None:
    """The cause decides, however the exception is wrapped."""
    assert retry_of(cause) is retry
    flow_failed = PipelineFailed("flow: it failed")
    flow_failed.__cause__ = cause
    reported = PipelineError("it failed")
    reported.__cause__ = flow_failed
    assert retry_of(reported) is retry
