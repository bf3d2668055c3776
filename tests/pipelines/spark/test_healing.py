"""The failures after which a retry may succeed."""

from __future__ import annotations

import pytest
import sqlalchemy as sa
from pyspark.errors import AnalysisException

from odradek.pipelines.operating.backoff import Healing
from odradek.pipelines.spark.continuing import CheckpointRefused
from odradek.pipelines.spark.engines.running import PipelineFailed
from odradek.pipelines.spark.expectations import ExpectationFailed
from odradek.pipelines.spark.sessions.failures import PipelineError, SparkProcessEnded, healing_of
from odradek.pipelines.spark.sessions.session import JavaMissing
from odradek.pipelines.spark.sinks.table_changes import WarehouseRefused
from odradek.pipelines.spark.sinks.warehouse import WarehouseUnavailable
from odradek.pipelines.spark.writing.topics import BrokersUnavailable

EXPECTED = [
    (ExpectationFailed("rows"), Healing.NEVER),
    (CheckpointRefused("changed"), Healing.NEVER),
    (JavaMissing("no Java"), Healing.NEVER),
    (WarehouseRefused("no column"), Healing.NEVER),
    (WarehouseUnavailable("database is locked"), Healing.LIKELY),
    (AnalysisException("no such column"), Healing.NEVER),
    (BrokersUnavailable("no broker"), Healing.LIKELY),
    (SparkProcessEnded("gone"), Healing.LIKELY),
    (sa.exc.OperationalError("insert", {}, Exception("disk full")), Healing.LIKELY),
    (RuntimeError("org.apache.kafka.common.errors.TimeoutException: expired"), Healing.LIKELY),
    (RuntimeError("[USER_RAISED_EXCEPTION] a row does not meet it, which stops the pipeline"), Healing.NEVER),
    (ZeroDivisionError("in a step"), Healing.PERHAPS),
]


@pytest.mark.parametrize(("cause", "healing"), EXPECTED, ids=lambda each: type(each).__name__)
def test_the_cause_decides(cause: BaseException, healing: Healing) -> None:
    """The cause decides, however the exception is wrapped."""
    assert healing_of(cause) is healing
    flow_failed = PipelineFailed("flow: it failed")
    flow_failed.__cause__ = cause
    reported = PipelineError("it failed")
    reported.__cause__ = flow_failed
    assert healing_of(reported) is healing
