"""A suite of another client: where its tests come from, on how many brokers it runs, what is skipped and why."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"


@dataclass(slots=True)
class Outcome:
    """Of one top-level test; `text` is the reason of a skip, or the output of a failure."""

    state: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a suite: on how many brokers, which of its tests are left out, and where its output goes."""

    brokers: int
    left_out: frozenset[str]
    directory: Path


@dataclass(frozen=True, slots=True)
class Suite:
    name: str
    brokers: tuple[int, ...]
    execute: Callable[[Run], Mapping[str, Outcome]]
    """Runs all tests but those left out."""
    names: Callable[[], frozenset[str]]
    """The tests that the suite has."""
    fewest_passed: int
    """Fewer mean that tests were not found or not run."""
    skipped: Mapping[str, str] = field(default_factory=dict)
    """Test, `test/part` or `test@brokers`, and why it is not run."""

    def skipped_on(self, brokers: int) -> dict[str, str]:
        chosen = {}
        for key, reason in self.skipped.items():
            name, _, count = key.partition("@")
            if not count or int(count) == brokers:
                chosen[name] = reason
        return chosen


@dataclass(slots=True)
class Report:
    suite: str
    brokers: int
    outcomes: dict[str, Outcome]
    minutes: float

    def count(self, state: str) -> int:
        return sum(each.state == state for each in self.outcomes.values())

    def named(self, state: str) -> dict[str, str]:
        return {name: each.text for name, each in sorted(self.outcomes.items()) if each.state == state}


def run_suite(suite: Suite, brokers: int, directory: Path) -> Report:
    skipped = suite.skipped_on(brokers)
    unknown = {name.partition("/")[0] for name in skipped} - suite.names()
    if unknown:
        raise LookupError(f"{suite.name} has no test {', '.join(sorted(unknown))}: remove it from the skipped tests")
    begin_s = time.monotonic()
    outcomes = dict(suite.execute(Run(brokers, frozenset(skipped), directory)))
    outcomes |= {name: Outcome(SKIPPED, reason) for name, reason in skipped.items()}
    return Report(suite.name, brokers, outcomes, (time.monotonic() - begin_s) / 60)


def run_to_end(
    command: Sequence[str], directory: Path, environment: Mapping[str, str], output: Path, timeout_s: float
) -> None:
    """Runs the tests of a suite, whatever they return; after the timeout, none of their processes is left."""
    with (
        output.open("wb") as file,
        subprocess.Popen(
            command,
            cwd=directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        ) as process,
    ):
        try:
            process.wait(timeout_s)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
