"""The realtime engine writes and counts what the same definition gives as one batch, if `validate` accepts it."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from odradek.pipelines.spark.engines import realtime
from odradek.pipelines.spark.engines.realtime import RealtimeEngine
from odradek.pipelines.spark.writing.topics import prepare_topics
from tests.pipelines.equivalence.constructs import constructs_of
from tests.pipelines.equivalence.definitions import definition_of, write_definition
from tests.pipelines.equivalence.drawing import case_of, stateless_cases
from tests.pipelines.equivalence.oracle import Oracle
from tests.pipelines.equivalence.outcomes import Outcome, described, differences, plain_row
from tests.pipelines.equivalence.streams import fields_of
from tests.pipelines.spark.stage import Stage

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from odradek.pipelines.spark.computing.counts import BatchReport
    from odradek.testing import RunningBroker
    from tests.pipelines.equivalence.cases import Case

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
    constructs: Counter[str] = Counter()
    for seed in range(CASES):
        case = in_one_partition(case_of(seed, stateless_cases()))
        stage = Stage(spark, odradek_session_broker.bootstrap_servers, tmp_path_factory.mktemp("realtime"))
        oracle = Oracle(spark, case, is_stream=False)
        oracle.compute()
        expected = oracle.outcome
        found = run_realtime(stage, case, expected)
        problems = differences(expected, found)
        assert not problems, described(case, definition_of(case, "realtime"), [f"seed {seed}", *problems])
        constructs.update(constructs_of(case))
    print(f"{CASES} definitions on realtime: 0 differ")
    print("\n".join(f"{count:5d}  {name}" for name, count in sorted(constructs.items())))


def in_one_partition(case: Case) -> Case:
    """The case with all records of a source in its first partition, so that few tasks run at once."""
    ends: Counter[str] = Counter()
    batches = []
    for batch in case.batches:
        made = {}
        for name, records in batch.items():
            made[name] = tuple(replace(each, partition=0, offset=ends[name] + n) for n, each in enumerate(records))
            ends[name] += len(records)
        batches.append(made)
    return replace(case, batches=tuple(batches))


def run_realtime(stage: Stage, case: Case, expected: Outcome) -> Outcome:
    pipeline = stage.pipeline(with_topics(case, stage.folder))
    for source in case.sources:
        stage.create(source.name, 1)
    reports: list[BatchReport] = []
    running = RealtimeEngine(stage.spark, pipeline, prepare_topics(pipeline), reports.append).start()

    def is_as_expected() -> bool:
        return not differences(expected, outcome_of(stage, case, reports))

    try:
        for batch in case.batches:
            for name, records in batch.items():
                stage.produce(name, [fields_of(name, each)["value"] for each in records])
        give_up_at = time.monotonic() + WAIT_S
        running.wait(lambda: is_as_expected() or time.monotonic() > give_up_at)
        quiet_until = time.monotonic() + QUIET_S
        running.wait(lambda: time.monotonic() > quiet_until or not is_as_expected())  # no record may follow
        return outcome_of(stage, case, reports)
    finally:
        running.stop()


def with_topics(case: Case, folder: Path) -> str:
    """The definition with topics as `@name`, without its name, which the stage adds."""
    write_definition(case, folder, "realtime")
    made: dict[str, Any] = yaml.safe_load(definition_of(case, "realtime"))
    del made["pipeline"]
    made["dead_letters"] = "@dead"
    for each in [*made["sources"].values(), *made["sinks"].values()]:
        if "topic" in each:
            each["topic"] = f"@{each['topic']}"
    return yaml.safe_dump(made, sort_keys=False)


def outcome_of(stage: Stage, case: Case, reports: list[BatchReport]) -> Outcome:
    made = Outcome()
    for sink in case.sinks:
        rows = [
            {"deleted": text_of(each.key)} if each.value is None else json.loads(each.value)
            for each in stage.read(sink.name)
        ]
        made.rows[sink.name] = Counter(map(plain_row, rows))
    for each in stage.read("dead"):
        kind = each.headers["odradek-reason"].partition(":")[0]
        made.letters[kind, each.headers["odradek-step"], each.headers.get("source")] += 1
    for violation in (each for report in reports for each in report.violations):
        made.violations[violation.step, violation.expectation] += violation.rows
    return made


def text_of(key: str | bytes | None) -> str:
    return key.decode() if isinstance(key, bytes) else str(key)
