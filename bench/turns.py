"""Experiments that are no load on running brokers: each broker in turn, as often as is asked for."""

from collections.abc import Callable, Sequence
from pathlib import Path

from bench.brokers import BrokerKind
from bench.results import Experiment, Run
from bench.workloads import OTHERS

Said = Callable[[str, str, str, Run | None], None]
Measured = Callable[[BrokerKind, Path, Experiment], Run]


def in_turns(
    name: str, rounds: int, kinds: Sequence[BrokerKind], directory: Path, measured: Measured, say: Said
) -> Experiment:
    """`measured` is given a directory of its own, which is not there yet."""
    title, metrics = OTHERS[name]
    experiment = Experiment(name, title, list(metrics))
    for number in range(1, rounds + 1):
        for kind in kinds:
            run = measured(kind, directory / f"{name}-{kind.key}-{number}", experiment)
            experiment.add(kind.key, run)
            say(title, kind.title, f"{number} of {rounds}", run)
    return experiment
