"""Experiments that start brokers of their own: one broker after the other, round by round, in alternating order."""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from bench.brokers import BrokerKind
from bench.generator import Generator
from bench.results import Experiment, Run
from bench.workloads import OF_ODRADEK, OTHERS

T = TypeVar("T")

OnRun = Callable[[str, str, str, Run | None], None]
"""Called after each run with the workload, the broker, the round, and the figures (None for a warm-up)."""

Measure = Callable[[BrokerKind, Path, Experiment], Run]


def turn_order(brokers: Sequence[T], number: int) -> list[T]:
    """A B in odd rounds, B A in even ones, so that a machine that becomes slower or faster favours neither."""
    return list(brokers) if number % 2 else list(reversed(brokers))


def in_turns(
    name: str, rounds: range, kinds: Sequence[BrokerKind], directory: Path, measure: Measure, on_run: OnRun
) -> Experiment:
    """`measure` creates the directory that it is given; it is removed after the run."""
    title, metrics = OTHERS[name]
    experiment = Experiment(name, title, list(metrics))
    for number in rounds:
        for kind in turn_order(kinds, number):
            of_run = directory / f"{name}-{kind.key}-{number}"
            try:
                run = measure(kind, of_run, experiment)
            finally:
                shutil.rmtree(of_run, ignore_errors=True)  # up to gigabytes
            experiment.add(kind.key, run)
            on_run(title, kind.title, f"round {number}", run)
    return experiment


@dataclass(frozen=True, slots=True)
class Experiments:
    """A group of experiments; the method that measures one run has the experiment's name, with an underscore before."""

    generator: Generator
    kinds: Sequence[BrokerKind]
    directory: Path
    scale: float
    on_run: OnRun

    def measure(self, name: str, rounds: range) -> Experiment:
        measure_run: Measure = getattr(self, f"_{name}")
        kinds = [kind for kind in self.kinds if kind.is_odradek] if name in OF_ODRADEK else self.kinds
        return in_turns(name, rounds, kinds, self.directory, measure_run, self.on_run)
