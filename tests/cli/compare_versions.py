"""Compares every command of this checkout with that of another commit: help, output, errors and exit codes.

`python -m tests.cli.compare_versions --against COMMIT` prints the help of all commands, and runs the command lines of
`tests/cli/compared_commands.txt` on a broker of each version with a fresh data directory. Ports, ids, times and paths
are replaced before the comparison. Exits with 1 if anything differs; `--against HEAD` must find nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import json
import os
import re
import shlex
import socket
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bench.versions import ROOT, Version, VersionError, checked_out, this_checkout
from odradek.local.prepared import PreparedProcess
from tests.forks.client import command_modules

if TYPE_CHECKING:
    from collections.abc import Iterator

COMMANDS = Path(__file__).with_name("compared_commands.txt")
LIMIT_S = 300
COMMAND_LIMIT_S = 60
STOP = "[stop the broker]"
SPARK = "[spark] "
HELP_OF_ALL_COMMANDS = """
import contextlib, io, json, click
from odradek.cli.main import root

def show(command, path):
    with contextlib.redirect_stdout(io.StringIO()) as output:
        root.main([*path, "--help"], prog_name="odradek", standalone_mode=False)
    shown[" ".join([*path, "--help"])] = output.getvalue()
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            show(command.get_command(context, name), [*path, name])

shown = {}
show(root, [])
print(json.dumps(shown))
"""
REPLACEMENTS = [
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"\b20[2-9]\d-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?", "TIME"),
        (r"\b1[7-9]\d{11}\b", "TIME"),
        (r"\b\d+(\.\d+)? ?(ms|s|µs)\b", "DURATION"),
        (r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "UUID"),
        (r"(?<![\w-])(?=[\w-]*[A-Z0-9])[\w-]{22}(?![\w-])", "ID"),
        (r'("crc32c","value":)"[0-9a-f]+"', r"\1N"),  # of a topic's id
        (r'("seconds":)[\d.]+', r"\1N"),
    )
]
NUMBER = re.compile(r"\d[\d.,]*(e-?\d+)?")


@dataclass(frozen=True)
class Line:
    """`[MARKS] COMMAND LINE [< INPUT] [> FILE]`, with {data} and {dir}; JSON in quotes is left as it is."""

    text: str
    is_measured: bool = False
    """Its numbers differ from run to run: they are not compared (mark `#`)."""

    @classmethod
    def read(cls, text: str) -> Iterator[Line]:
        """The mark `*` runs the line a second time, with JSON output."""
        marks, _, command = text.partition(" ") if text[0] in "*#" else ("", "", text)
        yield cls(command, "#" in marks)
        if "*" in marks:
            yield cls(f"{command} --format json", "#" in marks)


class Side:
    """One version with its broker, its directory, and what its commands print."""

    def __init__(self, version: Version, directory: Path) -> None:
        self.version = version
        self.directory = directory
        self.shown: dict[str, str] = {}
        directory.mkdir()
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.port = listener.getsockname()[1]
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("ODRADEK", "XDG"))},
            "PYTHONPATH": f"{version.source}:{ROOT}",
            "HOME": str(directory),
            "COLUMNS": "100",
            "ODRADEK_BOOTSTRAP_SERVER": f"127.0.0.1:{self.port}",
        }
        with environment_variable("PYTHONPATH", self.environment["PYTHONPATH"]):
            self.forks = PreparedProcess(
                ("confluent_kafka.admin", "importlib.metadata", *command_modules(version.source))
            )

    def run(self, lines: list[str], deadline: float) -> None:
        self._read_help()
        broker = self._start_broker()
        try:
            for text in lines:
                if text == STOP:
                    self._stop(broker)
                    continue
                for line in Line.read(text):
                    if time.monotonic() < deadline:
                        self._run(line)
        finally:
            self._stop(broker)

    def _read_help(self) -> None:
        done = subprocess.run(
            [sys.executable, "-c", HELP_OF_ALL_COMMANDS],
            env=self.environment, stdout=subprocess.PIPE, check=True, timeout=LIMIT_S,
        )  # fmt: skip
        self.shown |= json.loads(done.stdout)

    def _start_broker(self) -> subprocess.Popen[str]:
        settings = {
            "log.dirs": self.directory / "data",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "group.initial.rebalance.delay.ms": 0,
            "log.retention.check.interval.ms": 24 * 3600 * 1000,
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
        }
        overrides = [f"--override={name}={value}" for name, value in settings.items()]
        broker = subprocess.Popen(
            [sys.executable, "-m", "odradek", "broker", *overrides],
            env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        assert broker.stdout is not None
        if not broker.stdout.readline():
            raise RuntimeError(f"the broker of {self.version.title} does not start")
        return broker

    def _stop(self, broker: subprocess.Popen[str]) -> None:
        broker.terminate()
        broker.wait(COMMAND_LIMIT_S)

    def _run(self, line: Line) -> None:
        command, _, output = line.text.partition(" > ")
        command, _, given = command.partition(" < ")
        places = {"{data}": str(self.directory / "data"), "{dir}": str(self.directory)}
        for name, place in places.items():
            command, output = command.replace(name, place), output.replace(name, place)
        stdin = given.replace("\\n", "\n").replace("\\t", "\t").encode()
        try:
            done = self.forks.run(
                shlex.split(command), self.environment, stdin, COMMAND_LIMIT_S, directory=str(self.directory)
            )
            text = f"{done.stdout.decode()}\n[errors]\n{done.stderr.decode()}\n[exit code {done.returncode}]\n"
        except subprocess.TimeoutExpired:
            text = f"[not ended after {COMMAND_LIMIT_S} s]\n"
        if output:
            Path(output).write_text(text.partition("\n[errors]")[0])
        self.shown[line.text] = self._normalized(text, line.is_measured)

    def _normalized(self, text: str, is_measured: bool) -> str:
        places = {str(self.directory): "DIR", str(self.version.source.parent): "SOURCES", str(self.port): "PORT"}
        for place, name in places.items():
            text = text.replace(place, name)
        for pattern, replacement in REPLACEMENTS:
            text = pattern.sub(replacement, text)
        text = NUMBER.sub("N", text) if is_measured else text
        return re.sub(r"(?<=\S) {2,}|-{4,}", "  ", text) if is_measured or "DURATION" in text else text


@contextlib.contextmanager
def environment_variable(name: str, value: str) -> Iterator[None]:
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        os.environ.pop(name) if before is None else os.environ.update({name: before})


def print_differences(before: Side, after: Side) -> int:
    """Prints a diff of each command that differs, and returns their number."""
    different = 0
    for name in dict.fromkeys([*before.shown, *after.shown]):
        old, new = (side.shown.get(name, "[not run]\n") for side in (before, after))
        if old != new:
            different += 1
            titles = (before.version.title, after.version.title)
            print(f"\n$ odradek {name}")
            print("\n".join(difflib.unified_diff(old.splitlines(), new.splitlines(), *titles, lineterm="", n=2)))
    print(f"{len(after.shown)} of {len(before.shown)} command lines, {different} with differences")
    return different


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.cli.compare_versions", description=__doc__)
    parser.add_argument("--against", metavar="COMMIT", required=True, help="the version before")
    parser.add_argument("--spark", action="store_true", help="also run the lines that start Spark (a minute more)")
    parser.add_argument("--seconds", type=int, default=LIMIT_S, help="after which no further line is run (%(default)s)")
    options = parser.parse_args()
    lines = [line for line in COMMANDS.read_text().splitlines() if line and not line.startswith("//")]
    lines = [line.removeprefix(SPARK) for line in lines if options.spark or not line.startswith(SPARK)]
    with tempfile.TemporaryDirectory(prefix="compared-") as directory:
        try:
            with checked_out(options.against, Path(directory)) as version:
                sides = [Side(version, Path(directory, "a")), Side(this_checkout(), Path(directory, "b"))]
                with ThreadPoolExecutor() as executor:
                    deadline = time.monotonic() + options.seconds
                    list(executor.map(lambda side: side.run(lines, deadline), sides))
        except (VersionError, RuntimeError) as failure:
            print(failure, file=sys.stderr)
            return 2
    return min(print_differences(*sides), 1)


if __name__ == "__main__":
    sys.exit(main())
