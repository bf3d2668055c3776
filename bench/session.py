"""One run of the benchmarks: which brokers, which experiments, in which order."""

import contextlib
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from bench import flame_graphs, throughput
from bench.brokers import BrokerKind, RunningBroker, running
from bench.clusters import Clusters
from bench.footprint import Footprint
from bench.generator import Generator
from bench.machine import facts
from bench.own_rates import OwnRates
from bench.pipelines import Pipelines
from bench.results import KAFKA, ODRADEK, Experiment, Results
from bench.scale import Scale
from bench.screen import Screen
from bench.security import Security
from bench.tls_brokers import running_with_tls
from bench.workloads import (
    CLUSTER_ROUNDS,
    CLUSTER_WORKLOADS,
    CLUSTERS,
    FOOTPRINTS,
    NEED_GO,
    OF_ODRADEK,
    OTHERS,
    OWN_RATES,
    PIPELINES,
    READS,
    RIGS,
    RIGS_ROUNDS,
    SCALES,
    SECURITY,
    START,
    TRANSFORM,
    TRANSFORM_ROUNDS,
    VALIDATE,
    WORKLOADS,
    Workload,
)

DISK_NEEDED_BYTES = 10e9  # two filled topics and the one that is written


@dataclass(frozen=True, slots=True)
class Profiles:
    directory: Path
    form: str


@dataclass(frozen=True, slots=True)
class Session:
    kinds: Sequence[BrokerKind]
    generator: Generator
    directory: Path
    screen: Screen
    names: Sequence[str]
    rounds: int
    scale: float
    keep: Callable[[Results], None]
    """Called with the results after each experiment, so that a failure of the next loses nothing."""
    profiles: Profiles | None = None

    @property
    def left_out(self) -> list[str]:
        """The names of experiments that the generator does not support."""
        return [] if self.generator.is_go else [name for name in self.names if name in NEED_GO]

    @property
    def workloads(self) -> list[Workload]:
        return [workload.scaled(self.scale) for workload in WORKLOADS if self._is_chosen(workload.name)]

    @property
    def others(self) -> list[str]:
        return [name for name in OTHERS if self._is_chosen(name)]

    def _is_chosen(self, name: str) -> bool:
        return name in self.names and name not in self.left_out

    @property
    def run_count(self) -> int:
        brokers = len(self.kinds)
        runs = len(self.workloads) * brokers * (self.rounds + 1)
        for name in self.others:
            warm_ups = 1 if name == TRANSFORM else 0
            runs += (len(self._rounds_of(name)) + warm_ups) * (1 if name in {READS, VALIDATE, *OF_ODRADEK} else brokers)
        return runs

    def _rounds_of(self, name: str) -> range:
        """Experiments that take long have fewer rounds."""
        if name in {START, VALIDATE}:
            count = self.rounds
        elif name in CLUSTER_WORKLOADS:
            count = min(self.rounds, CLUSTER_ROUNDS)
        elif name == TRANSFORM:
            count = min(self.rounds, TRANSFORM_ROUNDS)
        else:
            count = min(self.rounds, RIGS_ROUNDS) if name in RIGS else 1
        return range(1, count + 1)

    def run(self) -> Results:
        results = Results(
            date=datetime.now(UTC).date().isoformat(),
            rounds=self.rounds,
            scale=self.scale,
            generator=self.generator.description,
            machine=facts(self.directory, with_java=any(kind.key == KAFKA for kind in self.kinds)),
            brokers={kind.key: kind.title for kind in self.kinds},
        )
        if shutil.disk_usage(self.directory).free < DISK_NEEDED_BYTES * self.scale:
            self.screen.line(
                f"less than {DISK_NEEDED_BYTES * self.scale / 1e9:.0f} GB of disk space are free: the run may fail"
            )
        if self.left_out:
            self.screen.line(f"left out, because they need the Go load generator: {', '.join(self.left_out)}")
        with self.screen.showing(self.run_count):
            self._measure_workloads(results)
            footprint = Footprint(self.generator, self.kinds, self.directory, self.scale, self.screen.on_run)
            scale = Scale(self.generator, self.kinds, self.directory, self.scale, self.screen.on_run)
            pipelines = Pipelines(self.kinds, self.directory, self.scale, self.screen.on_run)
            clusters = Clusters(self.generator, self.kinds, self.directory, self.scale, self.screen.on_run)
            security = Security(self.generator, self.kinds, self.directory, self.scale, self.screen.on_run)
            own_rates = OwnRates(self.generator, self.kinds, self.directory, self.scale, self.screen.on_run)
            rooms: dict[str, Scale | Pipelines | Footprint | Clusters | Security | OwnRates] = {
                **dict.fromkeys(FOOTPRINTS, footprint),
                **dict.fromkeys(SCALES, scale),
                **dict.fromkeys(CLUSTERS, clusters),
                **dict.fromkeys(SECURITY, security),
                **dict.fromkeys(OWN_RATES, own_rates),
                **dict.fromkeys(PIPELINES, pipelines),
            }
            for name in self.others:
                self._add(results, rooms[name].measure(name, self._rounds_of(name)))
        return results

    def _measure_workloads(self, results: Results) -> None:
        if not self.workloads:
            return
        with contextlib.ExitStack() as stack:
            begin = running_with_tls if any(each.is_tls for each in self.workloads) else running
            brokers = [stack.enter_context(begin(kind, self.directory / kind.key)) for kind in self.kinds]
            for workload in self.workloads:
                rounds = range(1, self.rounds + 1)
                experiment = throughput.measure(self.generator, brokers, workload, rounds, self.screen.on_run)
                self._add(results, experiment)
                if self.profiles is not None:
                    self._profile(next(broker for broker in brokers if broker.key == ODRADEK), workload, self.profiles)

    def _add(self, results: Results, experiment: Experiment) -> None:
        results.experiments.append(experiment)
        self.keep(results)

    def _profile(self, broker: RunningBroker, workload: Workload, profiles: Profiles) -> None:
        with throughput.topics_to_read(self.generator, [broker], workload) as filled:
            path = profiles.directory / workload.name
            with flame_graphs.recorded(broker.pid, path, profiles.form) as file:
                throughput.run_once(self.generator, broker, workload, filled.get(broker.key))
        self.screen.line(f"{workload.title}: profile in {file}")
