"""The realtime engine writes what the oracle expects of definitions that it accepts."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from odradek.pipelines.planning.rules import plan_again
from odradek.pipelines.spark.engines import realtime
from odradek.pipelines.spark.engines.realtime import RealtimeEngine
from odradek.pipelines.spark.writing.topics import prepare_topics
from tests.pipelines.generated.drawing import case_of
from tests.pipelines.generated.oracle import Outcome
from tests.pipelines.generated.outcomes import described, differences
from tests.pipelines.generated.records import in_one_batch
from tests.pipelines.spark.stage import Stage

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from odradek.pipelines.spark.computing.counts import BatchReport
    from odradek.testing import RunningBroker
    from tests.pipelines.generated.drawing import Case
    from tests.pipelines.generated.records import Record

pytestmark = [pytest.mark.spark, pytest.mark.soak]

CASES = max(3, int(os.environ.get("EQUIVALENCE_CASES", "3")) // 10)
WAIT_S, QUIET_S = 60.0, 1.0
LEAST_BATCH = "5 seconds"  # Spark refuses shorter batches of real-time mode


@pytest.mark.timeout(120 * CASES)
def test_the_realtime_engine_gives_what_a_batch_gives(
    spark: SparkSession,
    odradek_session_broker: RunningBroker,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(realtime, "CHECKPOINT_EVERY", LEAST_BATCH)  # violations are reported with checkpoints
    for seed in range(CASES):
        case = case_of(seed, is_realtime=True)
        # All are in one partition, so that few tasks run at once.
        records = [replace(each, partition=0, offset=n) for n, each in enumerate(in_one_batch(case.batches)[0]["a"])]
        stage = Stage(spark, odradek_session_broker.bootstrap_servers, tmp_path_factory.mktemp("realtime"))
        batches = ({"a": tuple(records)},)
        expected = case.outcome(batches, is_stream=False)
        problems = differences(case, expected, run_realtime(stage, case, records, expected))
        assert not problems, described(case, batches, problems)


def run_realtime(stage: Stage, case: Case, records: list[Record], expected: Outcome) -> Outcome:
    stage.create("a", 1)
    plan = plan_again(stage.pipeline(with_topics(case, stage.folder)))
    reports: list[BatchReport] = []
    running = RealtimeEngine(stage.spark, plan, prepare_topics(plan.pipeline), reports.append).start()

    def is_as_expected() -> bool:
        return not differences(case, expected, outcome_of(stage, case, reports))

    try:
        stage.produce("a", [each.value for each in records])
        give_up_at = time.monotonic() + WAIT_S
        running.wait(lambda: is_as_expected() or time.monotonic() > give_up_at)
        quiet_until = time.monotonic() + QUIET_S
        running.wait(lambda: time.monotonic() > quiet_until or not is_as_expected())  # no record may follow
        return outcome_of(stage, case, reports)
    finally:
        running.stop()


def with_topics(case: Case, folder: Path) -> str:
    """The definition with topics as `@name`, without its name, which the stage adds."""
    made: dict[str, Any] = yaml.safe_load(case.text)
    del made["pipeline"]
    made["dead_letters"] = "@dead"
    for each in [*made["sources"].values(), *made["sinks"].values()]:
        each["topic"] = f"@{each['topic']}"
    return yaml.safe_dump(made, sort_keys=False, width=1000)


def outcome_of(stage: Stage, case: Case, reports: list[BatchReport]) -> Outcome:
    made = Outcome()
    for end in case.ends:
        found = stage.read(end.name)
        made.rows[end.name] = [{"deleted": each.key} if each.value is None else dict(each.json) for each in found]
    for each in stage.read("dead"):
        kind = each.headers["odradek-reason"].partition(":")[0]
        made.letters[kind, each.headers["odradek-step"], each.headers.get("odradek-source")] += 1
    for violation in (each for report in reports for each in report.violations):
        made.violations[violation.step, violation.expectation] += violation.rows
    return made
