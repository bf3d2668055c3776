"""`python -m bench`: its options, and the two ways to run it: beside Apache Kafka, and against another commit."""

import argparse
import contextlib
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console

from bench import comparison_report, generator, report
from bench.against import Comparison
from bench.brokers import BrokerError, BrokerKind
from bench.comparison import TOLERANCE
from bench.flame_graphs import SUFFIXES, ProfileError
from bench.generator import GeneratorError
from bench.kafka_broker import ApacheKafka
from bench.odradek_broker import Odradek
from bench.processes import raise_open_files_limit
from bench.results import AFTER, BEFORE, Results
from bench.screen import Screen
from bench.session import Profiles, Session
from bench.versions import VersionError, changed_requirements, checked_out, this_checkout
from bench.workloads import BROKER_NAMES, COMPARED_SIZES, IDLE_CONNECTIONS, NAMES
from tests.jvm import jars

ROOT = Path(__file__).parent.parent
DOCUMENT = ROOT / "docs" / "benchmarks.md"
OUTPUT = ROOT / "build" / "bench"
FULL_ROUNDS = 5
QUICK_SCALE = 0.02
QUICK_COMPARED_ROUNDS = 2
WITHOUT_AGAINST = ("alone", "broker_command", "profile", "write", "from_results")

DESCRIPTION = "Measure Odradek beside Apache Kafka, or against another commit of Odradek, on this machine."
EPILOG = """With --against, the exit code is 0 if nothing is worse than before, 1 if something is slower or takes more
by more than the tolerance, 2 if it could not be measured, 130 after Ctrl-C."""


def names(text: str) -> list[str]:
    chosen = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in chosen if name not in NAMES]
    if unknown or not chosen:
        raise argparse.ArgumentTypeError(f"no such workload: {', '.join(unknown)}; choose from {', '.join(NAMES)}")
    return chosen


def positive(text: str) -> int:
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"{number} is less than 1")
    return number


def percent(text: str) -> float:
    """`3` or `3%` as 0.03."""
    share = float(text.removesuffix("%")) / 100
    if not 0 <= share < 1:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and 100")
    return share


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m bench", description=DESCRIPTION, epilog=EPILOG)
    add = made.add_argument
    add("--only", type=names, metavar="NAME,…", help=f"some of: {', '.join(NAMES)}")
    add(
        "--rounds",
        type=positive,
        help=f"measured runs of each broker (default {FULL_ROUNDS}; 1 with --quick; 4 or 6 with --against)",
    )
    add("--quick", action="store_true", help="small sizes and few rounds: shows that it works, not how fast")
    add("--scale", type=float, help=f"multiply every size by this (default 1; {QUICK_SCALE} with --quick)")
    add("--alone", action="store_true", help="measure Odradek without Apache Kafka")
    add(
        "--against",
        metavar="GITREF",
        help="measure this checkout in turns with this commit, instead of Apache Kafka; writes against.md to --output",
    )
    add(
        "--tolerance",
        type=percent,
        metavar="PERCENT",
        default=TOLERANCE,
        help=f"with --against: a difference up to this is not worse (default {TOLERANCE * 100:g})",
    )
    add(
        "--generator",
        choices=("auto", "go", "librdkafka"),
        default="auto",
        help="the load generator (default: Go's if Go is installed)",
    )
    add(
        "--broker-command",
        metavar="COMMAND",
        help="measure this command instead of Odradek; {port} and {directory} are filled in",
    )
    add("--profile", action="store_true", help="one more run of each workload, under py-spy")
    add("--profile-format", choices=sorted(SUFFIXES), default="flamegraph")
    add("--directory", type=Path, help="parent of the brokers' data (default: the system's temporary directory)")
    add("--output", type=Path, default=OUTPUT, help="directory for results and profiles (default: build/bench)")
    add(
        "--write",
        action=argparse.BooleanOptionalAction,
        help="write docs/benchmarks.md (default: only when everything was measured at full size)",
    )
    add("--document", type=Path, default=DOCUMENT, help="the file that --write writes")
    add(
        "--from-results",
        type=Path,
        metavar="FILE",
        help="measure nothing: show and write the results of an earlier run",
    )
    return made


def read(arguments: Sequence[str] | None) -> argparse.Namespace:
    options = parser()
    given = options.parse_args(arguments)
    if given.against is not None:
        for name in WITHOUT_AGAINST:
            if getattr(given, name):
                options.error(f"--{name.replace('_', '-')} cannot be combined with --against")
        if others := [name for name in given.only or () if name not in BROKER_NAMES]:
            options.error(f"--against compares brokers, and {', '.join(others)} measures pipelines")
    return given


def is_full(given: argparse.Namespace) -> bool:
    reduced = given.quick or given.only or given.alone or given.scale or given.broker_command
    return not reduced and (given.rounds or FULL_ROUNDS) >= FULL_ROUNDS


def brokers(given: argparse.Namespace, screen: Screen) -> list[BrokerKind]:
    chosen: list[BrokerKind] = [Odradek(given.broker_command)]
    if not given.alone:
        missing = jars.missing()
        if missing is None:
            chosen.append(ApacheKafka())
        else:
            screen.line(f"Apache Kafka is left out: {missing}")
    return chosen


@contextlib.contextmanager
def prepared(given: argparse.Namespace, screen: Screen) -> Iterator[tuple[generator.Generator, Path]]:
    """The load generator, and a directory for the brokers' data that is removed at the end."""
    raise_open_files_limit(2 * IDLE_CONNECTIONS)
    load = generator.choose(given.generator)
    screen.line(f"load generator: {load.description}")
    with tempfile.TemporaryDirectory(prefix="odradek-bench-", dir=given.directory) as directory:
        yield load, Path(directory)


def scale_of(given: argparse.Namespace) -> float:
    return given.scale or (QUICK_SCALE if given.quick else 1.0)


def measure(given: argparse.Namespace, screen: Screen) -> Results:
    with prepared(given, screen) as (load, directory):
        session = Session(
            kinds=brokers(given, screen),
            generator=load,
            directory=directory,
            screen=screen,
            names=given.only or NAMES,
            rounds=given.rounds or (1 if given.quick else FULL_ROUNDS),
            scale=scale_of(given),
            keep=lambda results: results.save(given.output / "results.json"),
            profiles=Profiles(given.output / "profiles", given.profile_format) if given.profile else None,
        )
        return session.run()


def beside_kafka(given: argparse.Namespace, screen: Screen) -> int:
    results = Results.load(given.from_results) if given.from_results is not None else measure(given, screen)
    screen.conclude(results)
    if given.write if given.write is not None else is_full(given) and given.from_results is None:
        report.write(results, given.document)
        screen.line(f"written: {given.document.name}")
    return 0


def against(given: argparse.Namespace, screen: Screen) -> int:
    with checked_out(given.against, given.output) as before, prepared(given, screen) as (load, directory):
        after = this_checkout()
        notes = []
        if changes := changed_requirements(before.requirements, after.requirements):
            notes.append(f"Dependencies differ, and both run with those installed here: {', '.join(changes)}.")
        comparison = Comparison(
            kinds=[
                Odradek(key=BEFORE, source=before.source, given_title=BEFORE),
                Odradek(key=AFTER, source=after.source, given_title=AFTER),
            ],
            titles={BEFORE: before.title, AFTER: after.title},
            generator=load,
            directory=directory,
            screen=screen,
            names=given.only or [name for name, size in COMPARED_SIZES.items() if size.is_default],
            rounds=given.rounds or (QUICK_COMPARED_ROUNDS if given.quick else None),
            scale=scale_of(given),
            tolerance=given.tolerance,
            keep=lambda results: results.save(given.output / "against.json"),
        )
        for text in (f"before: {before.title}", f"after: {after.title}", *notes):
            screen.line(text)
        results = comparison.run()
    screen.compare(results, given.tolerance)
    document = given.output / "against.md"
    document.write_text(comparison_report.render(results, given.tolerance, notes))
    screen.line(f"written: {document}")
    return 1 if comparison_report.worse_rows(results, given.tolerance) else 0


def main(arguments: Sequence[str] | None = None) -> int:
    given = read(arguments)
    screen = Screen(Console())
    # Without a handler, SIGTERM would leave the brokers running.
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        return against(given, screen) if given.against is not None else beside_kafka(given, screen)
    except (BrokerError, GeneratorError, ProfileError, VersionError) as failure:
        screen.line(f"error: {failure}")
        return 1 if given.against is None else 2
    except KeyboardInterrupt:
        return 130
    finally:
        signal.signal(signal.SIGTERM, before)
