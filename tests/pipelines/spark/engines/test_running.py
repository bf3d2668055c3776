"""Flows that run together: a failed flow ends all, a flow whose Python process started too late is restarted."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any
from unittest.mock import MagicMock

import pytest

from odradek.pipelines.spark.engines.running import LATE_STARTS, LATE_WORKER, PipelineFailed, Running

if TYPE_CHECKING:
    from collections.abc import Callable


class Ended:
    """A query that has ended."""

    isActive = False  # noqa: N815 - Spark's name

    def __init__(self, error: str | None = None) -> None:
        self._error = error

    def exception(self) -> Exception | None:
        return None if self._error is None else RuntimeError(self._error)


def running() -> Running:
    return Running(MagicMock())


def begun(made: Running, *outcomes: str | None) -> Callable[[], int]:
    """A flow that ends in these ways, one after the other; returns how often it was started."""
    starts = iter(outcomes)
    count = 0

    def start() -> Any:
        nonlocal count
        count += 1
        return Ended(next(starts))

    made.begin("flow", start)
    return lambda: count


def test_a_flow_whose_python_process_was_late_is_begun_again() -> None:
    made = running()
    count = begun(made, LATE_WORKER, f"x: {LATE_WORKER}.", None)
    made.wait(lambda: False)
    assert count() == 3


class EndsAfterOneLook:
    """A query that ends after the first look at it."""

    def __init__(self, error: str) -> None:
        self._error = error
        self._looks = iter([True])

    @property
    def isActive(self) -> bool:  # noqa: N802 - Spark's name
        return next(self._looks, False)

    def exception(self) -> Exception:
        return RuntimeError(self._error)


def test_a_flow_that_ends_between_two_looks_at_it_is_begun_again() -> None:
    made = running()
    queries: list[Any] = [EndsAfterOneLook(LATE_WORKER), Ended()]
    starts = iter(queries)
    made.begin("flow", lambda: next(starts))
    made.wait(lambda: False)
    assert made.queries["flow"] is queries[1]


def test_not_for_ever() -> None:
    made = running()
    count = begun(made, *[LATE_WORKER] * 20)
    with pytest.raises(PipelineFailed, match=f"flow: {LATE_WORKER}"):
        made.wait(lambda: False)
    assert count() == LATE_STARTS + 1


def test_any_other_failure_is_one() -> None:
    made = running()
    count = begun(made, "disk full")
    with pytest.raises(PipelineFailed, match="flow: disk full"):
        made.wait(lambda: False)
    assert count() == 1


def test_all_flows_are_stopped_at_the_same_time() -> None:
    """Each stop waits for the others: one after the other they would wait for ever."""
    are_stopping = threading.Barrier(3)
    made = running()
    for name in ("a", "b", "c"):
        query = MagicMock()
        query.stop.side_effect = lambda: are_stopping.wait(30)
        made.add(name, query)
    made.stop()
    assert not are_stopping.broken
