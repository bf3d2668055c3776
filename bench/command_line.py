"""`python -m bench`: what to measure, how long, and where the figures go."""

import argparse
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from bench import generator, report
from bench.brokers import BrokerError, BrokerKind
from bench.flame_graphs import SUFFIXES, ProfileError
from bench.generator import GeneratorError
from bench.kafka_broker import ApacheKafka
from bench.odradek_broker import Odradek
from bench.processes import raise_open_files_limit
from bench.results import Results
from bench.screen import Screen
from bench.session import Profiles, Session
from bench.workloads import IDLE_CONNECTIONS, NAMES
from tests.jvm import jars

ROOT = Path(__file__).parent.parent
DOCUMENT = ROOT / "docs" / "benchmarks.md"
OUTPUT = ROOT / "build" / "bench"
FULL_ROUNDS = 5
QUICK_SCALE = 0.02


def names(text: str) -> list[str]:
    chosen = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in chosen if name not in NAMES]
    if unknown or not chosen:
        raise argparse.ArgumentTypeError(f"no such workload: {', '.join(unknown)}; there are {', '.join(NAMES)}")
    return chosen


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m bench", description="Odradek beside Apache Kafka on this machine.")
    add = made.add_argument
    add("--only", type=names, metavar="NAME,…", help=f"some of: {', '.join(NAMES)}")
    add("--rounds", type=int, help=f"measured runs of each broker (default {FULL_ROUNDS}; 1 with --quick)")
    add("--quick", action="store_true", help="small sizes and one round: to see that it works, not how fast")
    add("--scale", type=float, help=f"multiply every size by this (default 1; {QUICK_SCALE} with --quick)")
    add("--alone", action="store_true", help="measure Odradek without Apache Kafka")
    add("--generator", choices=("auto", "go", "librdkafka"), default="auto", help="default: Go's where Go is")
    add(
        "--broker-command",
        metavar="COMMAND",
        help="measure this in Odradek's place; {port} and {directory} are filled in",
    )
    add("--profile", action="store_true", help="one more run of each workload, under py-spy")
    add("--profile-format", choices=sorted(SUFFIXES), default="flamegraph")
    add("--directory", type=Path, help="where the brokers keep their data (default: the system's temporary directory)")
    add("--output", type=Path, default=OUTPUT, help="where results.json and profiles go (default: build/bench)")
    add(
        "--write",
        action=argparse.BooleanOptionalAction,
        help="write docs/benchmarks.md (default: only when everything was measured at full size)",
    )
    add("--document", type=Path, default=DOCUMENT, help="what --write writes")
    add("--from-results", type=Path, metavar="FILE", help="measure nothing: show and write what an earlier run kept")
    return made


def is_full(given: argparse.Namespace) -> bool:
    reduced = given.quick or given.only or given.alone or given.scale or given.broker_command
    return not reduced and (given.rounds or FULL_ROUNDS) >= FULL_ROUNDS


def brokers(given: argparse.Namespace, screen: Screen) -> list[BrokerKind]:
    chosen: list[BrokerKind] = [Odradek(given.broker_command)]
    if not given.alone:
        lacking = jars.missing()
        if lacking is None:
            chosen.append(ApacheKafka())
        else:
            screen.line(f"Apache Kafka is left out: {lacking}")
    return chosen


def measure(given: argparse.Namespace, screen: Screen) -> Results:
    raise_open_files_limit(2 * IDLE_CONNECTIONS)
    load = generator.choose(given.generator)
    screen.line(f"load generator: {load.description}")
    with tempfile.TemporaryDirectory(prefix="odradek-bench-", dir=given.directory) as directory:
        session = Session(
            kinds=brokers(given, screen),
            generator=load,
            directory=Path(directory),
            screen=screen,
            names=given.only or NAMES,
            rounds=given.rounds or (1 if given.quick else FULL_ROUNDS),
            scale=given.scale or (QUICK_SCALE if given.quick else 1.0),
            keep=lambda results: results.save(given.output / "results.json"),
            profiles=Profiles(given.output / "profiles", given.profile_format) if given.profile else None,
        )
        return session.run()


def main(arguments: Sequence[str] | None = None) -> int:
    given = parser().parse_args(arguments)
    screen = Screen(Console())
    # A plain SIGTERM would leave the brokers running.
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        results = Results.load(given.from_results) if given.from_results is not None else measure(given, screen)
    except (BrokerError, GeneratorError, ProfileError) as failure:
        screen.line(f"error: {failure}")
        return 1
    except KeyboardInterrupt:
        return 130
    finally:
        signal.signal(signal.SIGTERM, before)
    screen.conclude(results)
    if given.write if given.write is not None else is_full(given) and given.from_results is None:
        report.write(results, given.document)
        screen.line(f"written: {given.document.name}")
    return 0
