"""Suggestions for mistyped names."""

from __future__ import annotations

import pytest

from odradek.conventions.failures import did_you_mean, similar_names

KNOWN = ("retention.ms", "retention.bytes", "local.retention.ms", "segment.bytes", "segment.ms", "cleanup.policy")


@pytest.mark.parametrize(
    ("mistyped", "meant"),
    [("retention.mss", "retention.ms"), ("retention.bites", "retention.bytes"), ("cleanup.polcy", "cleanup.policy")],
)
def test_a_mistyped_name_has_one_suggestion(mistyped: str, meant: str) -> None:
    assert did_you_mean(mistyped, KNOWN) == f"did you mean {meant}?"


def test_names_that_are_equally_similar_are_all_suggested() -> None:
    assert similar_names("segment.b", ["segment.a", "segment.c"]) == ["segment.a", "segment.c"]
    assert did_you_mean("segment.b", ["segment.a", "segment.c"]) == "did you mean segment.a or segment.c?"


def test_nothing_is_suggested_for_a_name_that_is_like_none() -> None:
    assert did_you_mean("x", KNOWN) == ""
    assert did_you_mean("retention.ms", ()) == ""
