"""`simulator.yml`: mistakes are reported together, each with its place and a way out."""

from __future__ import annotations

import textwrap

import pytest

from odradek.examples.simulator.parsing import parse_simulation
from odradek.pipelines.definition.places import Problems
from odradek.pipelines.definition.substituting import read_yaml

GOOD = """\
topic: t
entities: {name: pump, count: 3}
signals: {pressure: {walk: {level: [90, 120], spread: 3}}, kind: {choice: [a, b]}}
value: {pump: "{id}", pressure: "{pressure}"}
"""


def problems_of(text: str) -> list[str]:
    problems = Problems()
    root = read_yaml(textwrap.dedent(text), "s.yml", {}, problems)
    assert root is not None
    simulation = parse_simulation(root, problems)
    assert (simulation is None) == bool(problems.errors)
    return [str(each).removeprefix("s.yml:") for each in problems]


def test_the_least_that_is_needed() -> None:
    assert problems_of(GOOD) == []


@pytest.mark.parametrize(
    ("added", "expected"),
    [
        ("rte: 5", "5:1: error: unknown key 'rte' of the simulator; did you mean 'rate'?"),
        ("rate: fast", "5:7: error: rate of the simulator must be a number of at least 0.001, not 'fast'"),
        ("key: '{pump}'", "5:6: error: there is no value 'pump'; values: time, id, number, time_ms, state, fault"),
        ("key: '{id'", "5:6: error: a brace has no counterpart; write {name}, such as {id} or {time}"),
        ("key: '{id:%Y}'", "5:6: error: 'id' takes no format; only {time:…} has one"),
        ("day: {peak: 25}", "5:13: error: peak of day must be a number from 0 to 24, not the number 25"),
        ("states: {up: {lasts: 1 s, next: {down: 1}}}", "5:33: error: there is no state 'down'; declare it"),
        (
            "faults: {kinds: {leak: {lasts: 1 minute, effects: {presure: {add: 3}}}}}",
            "5:52: error: there is no signal 'presure'; did you mean 'pressure'?",
        ),
        (
            "faults: {kinds: {leak: {lasts: 1 minute, effects: {kind: {add: 3}}}}}",
            "5:59: error: 'kind' cannot have the effect add; use becomes: [values]",
        ),
        (
            "faults: {kinds: {leak: {lasts: [2 minutes, 1 minute], records: 0}}}",
            "5:32: error: lasts of fault 'leak' must be a length of time or [shortest, longest], not a list",
        ),
        ("faults: {kinds: {leak: {lasts: 1 minute}}}", "5:24: error: fault 'leak' has no effects; say what it changes"),
        ("flaws: {late: {share: 2, by: 1 s}}", "5:23: error: share of flaws: late must be a number from 0 to 1"),
        ("flaws: {late: {share: 1}}", "5:15: error: flaws: late has no by; write how late"),
        (
            "flaws: {malformed: {share: 0.1, kinds: {gone: {remove: [presure]}}}}",
            "5:56: error: the record has no field 'presure'; did you mean 'pressure'?",
        ),
        (
            "flaws: {duplicate: {share: 1}, late: {share: 1, by: 1 s}}",
            "5:8: error: the shares of flaws are more than 1",
        ),
    ],
)
def test_a_mistake_has_its_place_and_a_way_out(added: str, expected: str) -> None:
    assert any(found.startswith(expected) for found in problems_of(GOOD + added))


@pytest.mark.parametrize(
    ("signal", "expected"),
    [
        ("{}", "has none of walk, draw, choice, total"),
        ("{walk: {spread: 3}}", "has no level"),
        ("{draw: {lognormal: 3}}", "must be median and standard deviation of the logarithm as numbers above 0"),
        ("{draw: {exponential: 0}}", "must be mean as numbers above 0"),
        ("{choice: [a, [b]]}", "must be a list of texts or numbers"),
        ("{choice: {a: 0}}", "the weight of 'a' must be a number above 0"),
        ("{choice: [a], noise: 1}", "a choice has no noise"),
        ("{walk: {level: 1}, per: entity}", "a walk has no per"),
        ("{total: {starts: 1, adds: {kind: 1}}}", "there is no number 'kind' before"),
        ("{total: {starts: 1}}", "has no adds"),
        ("{walk: {level: 1}, states: {up: 1}}", "there is no state 'up'"),
    ],
)
def test_a_mistake_of_a_signal(signal: str, expected: str) -> None:
    text = GOOD.replace("kind: {choice: [a, b]}", f"kind: {{choice: [a, b]}}, wrong: {signal}")
    assert expected in problems_of(text)[0]
    assert problems_of(text)[0].startswith("3:")


def test_all_mistakes_are_reported_together() -> None:
    assert len(problems_of("entities: {count: 0}\nsignals: {id: {walk: {level: 1}}}\nvalue: 3")) == 5


def test_what_is_missing_is_named() -> None:
    found = " ".join(problems_of("seed: 1"))
    for name in ("has no topic", "has no entities", "has no value"):
        assert name in found
