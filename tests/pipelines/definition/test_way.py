"""The switch between the two ways: only a definition of the new way has a plan, and is judged by its rules."""

from __future__ import annotations

import pytest

from odradek.pipelines.definition.loading import define_yaml
from odradek.pipelines.definition.places import Problems
from tests.pipelines.definition.definitions import SOURCE, define

NEW = {"ODRADEK_PIPELINES": "new"}
SOUND = SOURCE + "steps: {s: {sql: select id from rigs}}\nsinks: {o: {from: s, topic: out}}\n"
LIMITED = SOUND.replace("from rigs", "from rigs limit 3")


@pytest.mark.parametrize("environment", [{}, {"ODRADEK_PIPELINES": "old"}])
def test_a_definition_has_no_plan_otherwise(environment: dict[str, str]) -> None:
    assert define(SOUND, environment).plan is None


def test_the_plan_has_the_flows_of_a_sound_definition() -> None:
    found = define(SOUND, NEW)
    assert found.plan is not None
    assert found.plan.pipeline is found.pipeline
    assert [each.name for each in found.plan.flows] == ["rigs"]


def test_the_rules_judge_with_their_codes() -> None:
    found = define(LIMITED, NEW)
    assert not found.is_sound
    assert [(each.code, each.place.line) for each in found.problems] == [("OP001", 10)]
    assert not any(each.code for each in define(LIMITED).problems)


def test_what_cannot_be_parsed_has_no_plan() -> None:
    assert define_yaml("pipeline: 7:", "p.yml", NEW, None, Problems()).plan is None
