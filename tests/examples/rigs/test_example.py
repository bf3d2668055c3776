"""The rigs: both definitions are valid, agree where they overlap, and match the simulator and the live view."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from odradek.examples.folders import find_example
from odradek.examples.live_view.loading import load_view
from odradek.examples.simulator.loading import load_simulation
from odradek.examples.simulator.population import Population
from odradek.pipelines.definition.model import Pipeline, TopicTarget
from odradek.pipelines.definition.operations import Sql
from odradek.pipelines.definition.vocabulary import Engine
from odradek.pipelines.planning.loading import Choices, load_yaml
from tests.examples.rigs.stand_in import LIMITS

EXAMPLE = find_example("rigs")
STANDARD, REALTIME = EXAMPLE.definition, str(EXAMPLE.folder / "pipeline-realtime.yml")


def loaded(file: str, engine: Engine | None = None) -> Pipeline:
    definition = load_yaml(file, {}, Choices(engine=engine))
    assert definition.is_sound, definition.problems
    assert [each for each in definition.problems if "timers of step 'silent'" not in each.message] == []
    assert definition.pipeline is not None
    return definition.pipeline


def sql_of(pipeline: Pipeline, name: str) -> str:
    (operation,) = [step.operation for step in pipeline.steps if step.name == name]
    assert isinstance(operation, Sql)
    return operation.text


@pytest.mark.parametrize(
    ("file", "engine"), [(STANDARD, None), (STANDARD, Engine.BATCH), (REALTIME, None), (REALTIME, Engine.STANDARD)]
)
def test_the_definitions_are_sound(file: str, engine: Engine | None) -> None:
    assert loaded(file, engine).sinks


def test_the_realtime_engine_refuses_what_keeps_state() -> None:
    definition = load_yaml(STANDARD, {}, Choices(engine=Engine.REALTIME))
    refused = " ".join(problem.message for problem in definition.problems)
    assert not definition.is_sound
    for name in ("pressure_by_minute", "silent", "per_minute", "minutes", "pump_state"):
        assert f"'{name}'" in refused
    assert "'over_limit'" not in refused


def test_both_definitions_have_the_same_limits_and_expectations() -> None:
    standard, realtime = loaded(STANDARD), loaded(REALTIME)
    assert sql_of(standard, "over_limit") == sql_of(realtime, "over_limit")
    assert standard.steps[0].expectations == realtime.steps[0].expectations
    assert standard.sources[0].format == realtime.sources[0].format


def test_the_stand_in_has_the_limits_of_the_pipeline() -> None:
    rows = re.findall(r"'(\w+)',\s*\1,\s*(-?\d+),\s*(-?\d+)", sql_of(loaded(STANDARD), "over_limit"))
    assert {name: (int(lowest), int(highest)) for name, lowest, highest in rows} == LIMITS


def test_the_realtime_definition_writes_the_topics_of_the_live_view() -> None:
    pipeline, view = loaded(REALTIME), load_view(EXAMPLE.view, {})
    written = {sink.target.topic for sink in pipeline.sinks if isinstance(sink.target, TopicTarget)}
    assert {*written, pipeline.dead_letters} == set(view.topics[1:])


def test_the_records_have_the_schema_of_the_source() -> None:
    simulation, source = load_simulation(EXAMPLE.simulator, {}), loaded(STANDARD).sources[0]
    record = Population(simulation).next_record(0.0)
    assert record is not None
    assert source.format.schema is not None
    assert [column.name for column in source.format.schema.columns] == list(json.loads(record.value or b""))


def test_a_checkout_shows_the_example_of_the_package() -> None:
    assert (Path(__file__).resolve().parents[3] / "examples" / "rigs").resolve() == EXAMPLE.folder.resolve()
