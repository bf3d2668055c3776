"""Definitions with wrong results that the old way accepts are refused by the rules of the plan."""

from __future__ import annotations

import pytest

from odradek.pipelines.definition.loading import Way, define_yaml
from odradek.pipelines.definition.places import Problems
from tests.pipelines.equivalence.wrong_results import SOURCES, WRONG


@pytest.mark.parametrize("name", WRONG)
def test_it_is_refused_with_its_code_and_line(name: str) -> None:
    wrong = WRONG[name]
    by_way = {
        way: define_yaml(SOURCES + wrong.text, "w.yml", {"ODRADEK_PIPELINES": way}, None, Problems()) for way in Way
    }
    assert by_way[Way.OLD].is_sound, by_way[Way.OLD].problems
    above = SOURCES.count("\n")
    errors = {(each.code, each.place.line - above) for each in by_way[Way.NEW].problems if each.severity == "error"}
    assert (wrong.code, wrong.line) in errors
