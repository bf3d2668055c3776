"""`--against`: the broker of this checkout and that of another commit, measured in turns on one machine.

The rounds come in pairs, A B and B A. Each pair has broker processes of its own, because one process can be faster or
slower than another of the same version for as long as it runs. Every experiment has its first pair before any has its
second, so that a disturbance of some minutes affects few rounds of each. Experiments with a row that is worse are then
measured again, and judged by all their rounds.
"""

import contextlib
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from bench import throughput
from bench.brokers import BrokerKind, running
from bench.comparison import confirming_rounds
from bench.footprint import Footprint
from bench.generator import Generator
from bench.machine import facts
from bench.results import Experiment, Results
from bench.scale import Scale
from bench.screen import Screen
from bench.workloads import COMPARED_SIZES, FOOTPRINTS, NEED_GO, SCALES, WORKLOADS

PAIR = 2


@dataclass(frozen=True, slots=True)
class Comparison:
    kinds: Sequence[BrokerKind]
    titles: dict[str, str]
    """The full title of each version, by the key of its broker."""
    generator: Generator
    directory: Path
    screen: Screen
    names: Sequence[str]
    rounds: int | None
    """Of every experiment; without it, as COMPARED_SIZES says."""
    scale: float
    tolerance: float
    keep: Callable[[Results], None]
    """Called with the results after each experiment, so that a failure of the next loses nothing."""

    def run(self) -> Results:
        left_out = [] if self.generator.is_go else [name for name in self.names if name in NEED_GO]
        if left_out:
            self.screen.line(f"left out, because they need the Go load generator: {', '.join(left_out)}")
        names = [name for name in self.names if name not in left_out]
        results = Results(
            date=datetime.now(UTC).date().isoformat(),
            rounds=max(map(self._rounds_of, names), default=0),
            scale=self.scale,
            generator=self.generator.description,
            machine=facts(self.directory, with_java=False),
            brokers=self.titles,
        )
        with self.screen.showing(sum(self._run_count(name, self._rounds_of(name)) for name in names)):
            self._measure_all(results, {name: range(1, self._rounds_of(name) + 1) for name in names})
            confirming = {each.name: confirming_rounds(each, self.tolerance) for each in results.experiments}
            self.screen.expect(sum(self._run_count(name, len(rounds)) for name, rounds in confirming.items()))
            self._measure_all(results, confirming)
        return results

    def _measure_all(self, results: Results, rounds: dict[str, range]) -> None:
        for start in range(0, max(map(len, rounds.values()), default=0), PAIR):
            for name, numbers in rounds.items():
                if pair := numbers[start : start + PAIR]:
                    self._add(results, self._measure(name, pair))

    def _rounds_of(self, name: str) -> int:
        return self.rounds or COMPARED_SIZES[name].rounds

    def _run_count(self, name: str, rounds: int) -> int:
        warm_ups = 0 if name in FOOTPRINTS or name in SCALES else -(-rounds // PAIR)
        return len(self.kinds) * (rounds + warm_ups)

    def _measure(self, name: str, rounds: range) -> Experiment:
        scale = self.scale * COMPARED_SIZES[name].scale
        on_run = self.screen.on_run
        if name in FOOTPRINTS:
            return Footprint(self.generator, self.kinds, self.directory, scale, on_run).measure(name, rounds)
        if name in SCALES:
            return Scale(self.generator, self.kinds, self.directory, scale, on_run).measure(name, rounds)
        workload = next(each for each in WORKLOADS if each.name == name).scaled(scale)
        directory = self.directory / name
        with contextlib.ExitStack() as stack:
            stack.callback(shutil.rmtree, directory, ignore_errors=True)
            brokers = [stack.enter_context(running(kind, directory / kind.key)) for kind in self.kinds]
            return throughput.measure(self.generator, brokers, workload, rounds, on_run)

    def _add(self, results: Results, measured: Experiment) -> None:
        known = next((each for each in results.experiments if each.name == measured.name), None)
        if known is None:
            results.experiments.append(measured)
        else:
            known.extend(measured)
        self.keep(results)
