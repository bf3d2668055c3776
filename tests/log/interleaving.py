"""Two threads without threads: what one of them does at every step of the other.

The event loop and worker threads share the fields of a log without locks, so the order in which the fields are read and
written is part of the design. These helpers try every point at which the interpreter could switch threads."""

import dis
import functools
import itertools
import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, TypeVar

T = TypeVar("T")

_TRACED = "/odradek/log/"
_SHARED_ACCESSES = frozenset({"LOAD_ATTR", "STORE_ATTR", "LOAD_METHOD", "CALL", "CALL_FUNCTION_EX"})


@functools.cache
def _switch_points(code: CodeType) -> frozenset[int]:
    """The instructions that read or write fields, or call something that may: a switch elsewhere has the same effect
    as one at the next of these."""
    return frozenset(each.offset for each in dis.get_instructions(code) if each.opname in _SHARED_ACCESSES)


def interrupt_at_every_step(run: Callable[[], T], interrupt: Callable[[], None]) -> tuple[T, int]:
    """Calls `interrupt` before each access of `run` to what threads share; returns the result of `run` and the number
    of calls."""
    steps = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal steps
        if _TRACED not in frame.f_code.co_filename:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode" and frame.f_lasti in _switch_points(frame.f_code):
            steps += 1
            interrupt()
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        return run(), steps
    finally:
        sys.settrace(before)


def interrupt_at_step(run: Callable[[], T], step: int, interrupt: Callable[[], None]) -> tuple[T, bool]:
    """Calls `interrupt` once, before access number `step` of `run`; returns the result, and whether `run` has so many
    of them."""
    count = 0

    def count_and_interrupt() -> None:
        nonlocal count
        if count == step:
            interrupt()
        count += 1

    result, _ = interrupt_at_every_step(run, count_and_interrupt)
    return result, count > step


def first_missing_step(run_with_interrupt_at: Callable[[int], bool]) -> int:
    """Runs a case for every step, until it says that there is no such step; returns the number of steps."""
    return next(step for step in itertools.count() if not run_with_interrupt_at(step))
