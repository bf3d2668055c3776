"""Definitions that are drawn are accepted, and have every construct."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest

from odradek.pipelines.definition.places import Problems
from tests.pipelines.generated.constructs import Construct
from tests.pipelines.generated.drawing import case_of
from tests.pipelines.generated.faults import FAULTS
from tests.pipelines.generated.records import SPLITS

RECORD_KINDS = (
    "duplicate", "null event time", "late", "at the watermark", "unparsed", "−0.0", "NaN", "year 1", "\\0",
    "short array", "text that is no number",
)  # fmt: skip
LEAST = 10
EVERY = {*map(str, Construct), *(f"record: {each}" for each in RECORD_KINDS)}


def refusals(seed: int, *, is_realtime: bool = False) -> list[str]:
    """What the rules refuse of the definition of a seed, with the definition."""
    problems = Problems()
    case = case_of(seed, is_realtime=is_realtime)
    case.plan(problems)
    return [f"seed {seed}: {each}\n{case.text}" for each in problems.errors]


def constructs(seeds: range) -> Counter[str]:
    found: Counter[str] = Counter()
    for seed in seeds:
        found.update(set(case_of(seed).constructs()))
    return found


def test_what_is_drawn_is_accepted() -> None:
    refused = [each for seed in range(100) for each in refusals(seed)]
    assert not refused, f"{len(refused)} refused, the first:\n{refused[0]}"
    refused = [each for seed in range(30) for each in refusals(seed, is_realtime=True)]
    assert not refused, f"{len(refused)} refused, the first:\n{refused[0]}"


def test_only_late_rows_depend_on_the_split() -> None:
    """The oracle: of records of which none is late, it expects the same however they are cut into batches."""
    cases = [case for case in map(case_of, range(60)) if not case.has_late_rows]
    for case, split in itertools.product(cases, SPLITS.values()):
        batches = split(case.batches)
        found, expected = (case.outcome(batches, is_stream=is_stream) for is_stream in (True, False))
        assert not found.late
        assert (repr(found.rows), found.letters) == (repr(expected.rows), expected.letters)


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_every_construct_is_drawn_and_accepted() -> None:
    refused = [each for seed in range(1000) for each in refusals(seed)]
    assert not refused, f"{len(refused)} refused, the first:\n{refused[0]}"
    found = constructs(range(1000))
    print("\n".join(f"{count:5d}  {name}" for name, count in sorted(found.items())))
    assert set(found) == EVERY
    assert {name: found[name] for name in EVERY if found[name] < LEAST} == {}


def test_each_fault_changes_functions_that_exist_and_may_show() -> None:
    assert len(FAULTS) >= 30
    drawn = [case_of(seed).constructs() for seed in range(30)]
    for each in FAULTS.values():
        with each.plant():
            assert any(map(each.may_show_in, drawn)), each.name


def test_a_seed_draws_one_case() -> None:
    assert case_of(7).text == case_of(7).text
    assert case_of(7).batches == case_of(7).batches
    assert len({case_of(seed).text for seed in range(50)}) > 45
