"""`view.yml`: mistakes are reported together, each with its place and a way out."""

from __future__ import annotations

import pytest

from odradek.examples.live_view.definition import Side
from odradek.examples.live_view.parsing import parse_view
from odradek.pipelines.definition.places import Problems
from odradek.pipelines.definition.substituting import read_yaml
from tests.examples.live_view.seen import CARDS, RIGS

GOOD = "title: t\npanels:\n  topics: {topics: [a, b]}\n"


def problems_of(text: str) -> list[str]:
    problems = Problems()
    root = read_yaml(text, "v.yml", {}, problems)
    assert root is not None
    assert (parse_view(root, problems) is None) == bool(problems.errors)
    return [str(each).removeprefix("v.yml:") for each in problems]


def test_the_topics_of_a_view_begin_with_the_input() -> None:
    assert RIGS.topics == ("rigs", "pressure", "temperature", "warnings", "rigs-dead-letters")
    assert (RIGS.output, CARDS.output) == ("warnings", "alerts")
    assert [panel.side for panel in CARDS.panels] == [Side.LEFT, Side.RIGHT, Side.RIGHT, Side.LEFT]


@pytest.mark.parametrize(
    ("panel", "expected"),
    [
        ("{chart: {topc: a}}", "4:15: error: unknown key 'topc' of chart of panel 'p'; did you mean 'topic'?"),
        ("{charts: 1}", "4:7: error: unknown key 'charts' of panel 'p'; did you mean 'chart'?"),
        ("{}", "4:6: error: panel 'p' has none of topics, figures, episodes, counts, rows, chart"),
        ("{chart: {topic: a}, side: middle}", "4:32: error: side of panel 'p' cannot be 'middle'; one of: left, right"),
        ("{chart: {topic: 'a b'}}", "4:22: error: topic of chart of panel 'p' must be the name of a topic"),
        ("{counts: {topic: a}}", "4:15: error: counts of panel 'p' has none of column, header"),
        ("{episodes: {topic: a}}", "4:17: error: episodes of panel 'p' has no key; name the columns"),
        ("{rows: {view: v}}", "4:13: error: rows of panel 'p' has no columns; write columns: {title: column}"),
        ("{figures: {latency: {topic: a}}}", "4:26: error: latency of figures of panel 'p' has no since"),
        ("{figures: {lag: {topic: a, seen_in: ['b c']}}}", "4:42: error: seen_in of lag of figures of panel 'p'"),
        (
            "{figures: {states: {entities: e, seen_in: a, topic: a, key: k, values: {x: {is: y, color: p}}}}}",
            "4:96: error: there is no color 'p'",
        ),
    ],
)
def test_a_mistake_has_its_place_and_a_way_out(panel: str, expected: str) -> None:
    assert any(found.startswith(expected) for found in problems_of(f"{GOOD}  p: {panel}\n"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("title: t", "1:1: error: the view has no panels"),
        ("panels: {topics: {topics: a}}", "1:1: error: the view has no title"),
        ("title: t\npanels: {c: {counts: {topic: a, column: b}}}", "1:1: error: the view has no topics in its panels"),
    ],
)
def test_what_is_missing_is_named(text: str, expected: str) -> None:
    (found,) = problems_of(text)
    assert found.startswith(expected)
