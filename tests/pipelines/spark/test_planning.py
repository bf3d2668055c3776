"""Settings that apply to single queries."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from odradek.pipelines.operating.checkpoints import Checkpoints, checkpoint_uri
from odradek.pipelines.planning.rules import plan_again
from odradek.pipelines.spark.computing.row_program import EXCLUDED_RULES
from odradek.pipelines.spark.engines.flow_queries import (
    CHECKSUMS,
    MANAGER,
    checkpoint_settings,
    is_local,
    query_settings,
)
from odradek.pipelines.spark.engines.realtime import AT_ONCE
from odradek.pipelines.spark.engines.standard import StandardEngine
from odradek.pipelines.spark.sessions.private_names import NAMES
from odradek.pipelines.spark.writing.kafka_records import Producer, producer_options
from odradek.pipelines.spark.writing.topics import prepare_topics
from tests.pipelines.spark.stage import renamed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from tests.pipelines.spark.stage import Stage

pytestmark = pytest.mark.spark

LOCAL_CHECKPOINTS = {MANAGER: NAMES["checkpoint files"].path, CHECKSUMS: "false"}
DEFINITION = """
sources: {readings: {topic: "@in", schema: "id BIGINT, pressure DOUBLE", columns: {seen: SEEN}}}
sinks: {all: {from: readings, topic: "@out", value: [id, pressure, seen]}}
"""


@pytest.mark.parametrize("clock", [None, "now()"])
def test_only_planned_queries_leave_rules_out(stage: Stage, clock: str | None) -> None:
    stage.create("in")
    stage.produce("in", [{"id": 1, "pressure": 100.5}, {"id": 2}])
    pipeline = stage.pipeline(DEFINITION.replace("SEEN", clock or "id + 1"))
    running = StandardEngine(stage.spark, plan_again(pipeline), prepare_topics(pipeline)).start(until_caught_up=True)
    try:
        query = running.queries["readings"]
        settings = query._jsq.streamingQuery().sparkSessionForStream().conf()
        assert bool(settings.get(EXCLUDED_RULES, "")) == (clock is None)
        assert settings.get(MANAGER, "") == LOCAL_CHECKPOINTS[MANAGER]
        running.wait(lambda: False)
    finally:
        running.stop()
    assert not stage.spark.conf.get(EXCLUDED_RULES, "")
    assert stage.spark.conf.get(MANAGER, None) is None
    assert sorted(each.json["id"] for each in stage.read("out")) == [1, 2]


def test_settings_are_put_back_when_a_query_does_not_start(stage: Stage) -> None:
    stage.spark.conf.set("odradek.kept", "before")
    with pytest.raises(RuntimeError), query_settings(stage.spark, {"odradek.kept": "a", "odradek.new": "b"}):
        raise RuntimeError
    assert stage.spark.conf.get("odradek.kept") == "before"
    assert stage.spark.conf.get("odradek.new", None) is None
    stage.spark.conf.unset("odradek.kept")


def test_checkpoints_elsewhere_and_own_choices_are_left_alone(stage: Stage) -> None:
    pipeline = stage.pipeline(DEFINITION.replace("SEEN", "id"))
    assert checkpoint_settings(stage.spark, pipeline) == LOCAL_CHECKPOINTS
    assert checkpoint_settings(stage.spark, renamed(pipeline, checkpoints="s3a://bucket/checkpoints")) == {}
    assert MANAGER not in checkpoint_settings(stage.spark, renamed(pipeline, spark={MANAGER: "mine"}))
    assert is_local("/somewhere")
    assert is_local("file:///somewhere")
    assert not is_local("hdfs://somewhere")


@pytest.fixture
def other_default(spark: SparkSession) -> Iterator[None]:
    """Hadoop's default file system is not the local one, as with the configuration of a YARN cluster."""
    settings = spark.sparkContext._jsc.hadoopConfiguration()
    before = settings.get("fs.defaultFS")
    settings.set("fs.defaultFS", "nosuch://bucket")
    yield
    settings.set("fs.defaultFS", before)


def test_checkpoints_without_a_scheme_are_local(stage: Stage, other_default: None) -> None:
    assert checkpoint_uri(renamed(stage.pipeline(DEFINITION.replace("SEEN", "id")), checkpoints="s3a://b/c"), "f") == (
        "s3a://b/c/f"
    )
    stage.create("in")
    stage.produce("in", [{"id": 1, "pressure": 1.0}])
    pipeline = renamed(stage.pipeline(DEFINITION.replace("SEEN", "id")), checkpoints="with space%20")
    stage.run(pipeline)
    assert [each.flow for each in Checkpoints(pipeline).flows()] == ["readings"]
    assert (stage.folder / "with space%20" / "readings" / "commits").is_dir()


def test_waiting_does_not_exceed_the_time_that_a_producer_is_given() -> None:
    assert producer_options(Producer("b:1", ()))["kafka.linger.ms"] == "100"
    assert producer_options(Producer("b:1", (("linger.ms", "5"),)))["kafka.linger.ms"] == "5"
    assert producer_options(Producer("b:1", (("delivery.timeout.ms", "30000"),)), AT_ONCE)["kafka.linger.ms"] == "0"
    assert "kafka.linger.ms" not in producer_options(Producer("b:1", (("delivery.timeout.ms", "30000"),)))
    assert "kafka.batch.size" not in producer_options(Producer("b:1", (("buffer.memory", "65536"),)))
