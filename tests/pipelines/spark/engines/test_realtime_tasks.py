"""The tasks of the realtime engine, which must all have a thread at the same time."""

from __future__ import annotations

import logging
import os
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from odradek.pipelines.spark.engines.realtime import (
    check_threads,
    jvm_processors,
    local_threads,
    tasks_of,
    threads_of,
)
from odradek.pipelines.spark.sessions import private_names
from odradek.pipelines.spark.sessions.failures import PipelineError
from odradek.pipelines.spark.sessions.private_names import NAMES, PROCESSORS
from odradek.pipelines.spark.writing.topics import Cluster
from tests.pipelines.definition.definitions import sound

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PATTERN = """
pipeline: p
sources: {all: {pattern: "rigs-.*", format: text}}
sinks: {out: {from: all, topic: out}}
"""
MATCHING = {"rigs-1": 1, "rigs-2": 1, "rigs-3": 1}
OTHERS = {"my-rigs-1": 500, "other": 300}


class FakeCluster(Cluster):
    """A cluster with these topics and their partitions."""

    def __init__(self, partitions: dict[str, int]) -> None:
        self.bootstrap_servers = "fake:9092"
        self.partitions = partitions


def test_the_topics_that_match_a_pattern_need_threads() -> None:
    pipeline = sound(PATTERN)
    tasks = tasks_of(pipeline, FakeCluster(MATCHING))
    check_threads(pipeline, tasks, "local[3]", 1)
    with pytest.raises(PipelineError, match=r"runs 3 tasks at once.*local\[2\] has threads for 2.*use local\[3\]"):
        check_threads(pipeline, tasks, "local[2]", 8)


def test_topics_that_do_not_match_need_no_threads() -> None:
    pipeline, cluster = sound(PATTERN), FakeCluster(MATCHING | OTHERS)
    assert tasks_of(pipeline, cluster) == 3
    assert local_threads(pipeline, cluster) < 300


def test_a_pattern_matches_no_internal_topics() -> None:
    every = sound(PATTERN.replace("rigs-", ""))
    assert tasks_of(every, FakeCluster(MATCHING | {"__consumer_offsets": 50})) == 3


@pytest.mark.parametrize(
    ("master", "threads"),
    [("local", 1), ("local[3]", 3), ("local[3, 2]", 3), ("local[*]", 5), ("local[*,2]", 5),
     ("local-cluster[2,1,1024]", None), ("spark://host:7077", None), ("yarn", None)],
)  # fmt: skip
def test_the_threads_of_a_master(master: str, threads: int | None) -> None:
    assert threads_of(master, 5) == threads


@pytest.mark.spark
def test_the_processors_are_those_of_the_jvm(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The default parallelism is the same number only if `spark.default.parallelism` is not set."""
    own = len(os.sched_getaffinity(0))
    monkeypatch.setattr(private_names, "_warned", set())
    assert 1 <= jvm_processors(spark) <= own
    monkeypatch.setitem(NAMES, "jvm", replace(NAMES["jvm"], path="_renamed"))
    with caplog.at_level(logging.WARNING):
        assert jvm_processors(spark) == spark.sparkContext.defaultParallelism == 4
    assert PROCESSORS.fallback in caplog.text
