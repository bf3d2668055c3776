"""The rule that a pump has gone silent, as a state machine: its state and timers are a few dictionaries here."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.examples.folders import find_example

RULES = find_example("rigs").folder / "rules.py"
TIMEOUT_MS = 30_000


@pytest.fixture(scope="module")
def rules() -> Any:
    """Loads the module with substitutes for the two names that it imports from Spark, so that no session is needed."""
    sql, streaming = ModuleType("pyspark.sql"), ModuleType("pyspark.sql.streaming")
    sql.Row = SimpleNamespace  # type: ignore[attr-defined]  # a stand-in of the module
    streaming.StatefulProcessor = object  # type: ignore[attr-defined]
    spec = importlib.util.spec_from_file_location("rigs_rules", RULES)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        for name, stub in (("pyspark", ModuleType("pyspark")), (sql.__name__, sql), (streaming.__name__, streaming)):
            patch.setitem(sys.modules, name, stub)
        spec.loader.exec_module(module)
    return module


@dataclass
class FakeHandle:
    """One key's state and timers."""

    value: tuple[int, ...] | None = None
    timers: set[int] = field(default_factory=set)

    def getValueState(self, _name: str, _schema: str) -> FakeHandle:  # noqa: N802 - Spark's name
        return self

    def exists(self) -> bool:
        return self.value is not None

    def get(self) -> tuple[int, ...] | None:
        return self.value

    def update(self, value: tuple[int, ...]) -> None:
        self.value = value

    def clear(self) -> None:
        self.value = None

    def registerTimer(self, expiry_ms: int) -> None:  # noqa: N802
        self.timers.add(expiry_ms)


def at(time_ms: int) -> datetime:
    return datetime.fromtimestamp(time_ms / 1000, UTC)


def play(rules: Any, heard_ms: list[int], until_ms: int, batch_ms: int) -> list[Any]:
    """Runs micro-batches of a pump's records and timers, one every `batch_ms`; returns the warnings."""
    handle = FakeHandle()
    rule = rules.Silence(TIMEOUT_MS)
    rule.init(handle)
    warnings = []
    for now_ms in range(0, until_ms, batch_ms):
        clock = SimpleNamespace(getCurrentProcessingTimeInMs=lambda now_ms=now_ms: now_ms)
        rows = [
            SimpleNamespace(event_time=at(time_ms), reported_at=at(time_ms))
            for time_ms in heard_ms
            if now_ms - batch_ms < time_ms <= now_ms
        ]
        if rows:
            assert not list(rule.handleInputRows((7,), iter(rows), clock))
        for expiry_ms in sorted(timer for timer in handle.timers if timer <= now_ms):
            handle.timers.discard(expiry_ms)
            warnings += rule.handleExpiredTimer((7,), clock, SimpleNamespace(getExpiryTimeInMs=lambda: 0))
        assert len(handle.timers) == handle.exists()
    return warnings


def test_a_pump_that_speaks_is_not_silent(rules: Any) -> None:
    assert play(rules, list(range(0, 300_000, 5000)), 300_000, 100) == []


def test_one_warning_for_one_silence_and_another_for_the_next(rules: Any) -> None:
    warnings = play(rules, [1000, 2000, 100_000], 200_000, 500)
    assert [(w.hcid, w.rule, w.bound) for w in warnings] == [(7, "silent", 30.0)] * 2
    assert [w.event_time for w in warnings] == [at(2000), at(100_000)]
    assert [w.reported_at for w in warnings] == [at(32_000), at(130_000)]
    assert all(30 <= w.value <= 31 for w in warnings)


@given(gaps=st.lists(st.integers(1, 100_000), min_size=1, max_size=12), batch_ms=st.sampled_from([100, 1000, 7000]))
def test_every_long_gap_is_warned_of_once(rules: Any, gaps: list[int], batch_ms: int) -> None:
    heard_ms = [sum(gaps[: index + 1]) for index in range(len(gaps))]
    warnings = play(rules, heard_ms, heard_ms[-1] + 2 * TIMEOUT_MS + 3 * batch_ms, batch_ms)
    surely = sum(gap > TIMEOUT_MS + 2 * batch_ms for gap in gaps[1:]) + 1
    possibly = sum(gap > TIMEOUT_MS - 2 * batch_ms for gap in gaps[1:]) + 1
    assert surely <= len(warnings) <= possibly
    assert warnings[-1].event_time == at(heard_ms[-1])
