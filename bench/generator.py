"""The load generator: a Go program on franz-go, built once, or librdkafka through Python where Go is not installed.

Both take the same flags and print the same line of JSON.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from bench.processes import lowest_priority
from tests.jvm.build_cache import build_once, cache_directory, content_digest

SOURCES = Path(__file__).parent / "load"
LIBRDKAFKA = Path(__file__).parent / "librdkafka_load.py"
DEADLINE_S = 900

Choice = Literal["auto", "go", "librdkafka"]


class GeneratorError(RuntimeError):
    """The generator or its build failed."""


@dataclass(frozen=True, slots=True)
class Generator:
    command: tuple[str, ...]
    description: str
    is_go: bool = False

    def arguments(self, mode: str, **flags: object) -> list[str]:
        named = [part for name, value in flags.items() for part in (f"-{name.replace('_', '-')}", str(value))]
        return [*self.command, mode, *named]

    def run(self, mode: str, **flags: object) -> dict[str, Any]:
        return self._run((), mode, flags)

    def run_at_lowest_priority(self, mode: str, **flags: object) -> dict[str, Any]:
        """So that what another client measures is slowed down by the broker alone."""
        return self._run(lowest_priority(), mode, flags)

    def _run(self, prefix: Sequence[str], mode: str, flags: Mapping[str, object]) -> dict[str, Any]:
        done = subprocess.run(
            [*prefix, *self.arguments(mode, **flags)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )
        return read_line(mode, done.stdout.splitlines(), done.returncode, done.stderr)

    def start(self, mode: str, **flags: object) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            self.arguments(mode, **flags),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


def read_line(mode: str, lines: Sequence[str], code: int, error_output: str) -> dict[str, Any]:
    """The last line is the report."""
    if code != 0 or not lines:
        raise GeneratorError(f"the generator failed at {mode}: {error_output.strip()[-1000:] or f'code {code}'}")
    report: dict[str, Any] = json.loads(lines[-1])
    return report


def franz_go_version() -> str:
    for line in (SOURCES / "go.mod").read_text().splitlines():
        words = line.split()
        if words[:1] == ["github.com/twmb/franz-go"]:
            return words[1]
    raise GeneratorError("go.mod does not require franz-go")


def _build(directory: Path) -> None:
    done = subprocess.run(
        ["go", "build", "-buildvcs=false", "-trimpath", "-o", str(directory / "load"), "."],
        cwd=SOURCES,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise GeneratorError(f"go build failed: {done.stderr.strip()[-1000:]}")


def go_generator() -> Generator:
    sources = [path for path in SOURCES.iterdir() if path.suffix in {".go", ".mod", ".sum"}]
    # A directory per content: a concurrent run of another checkout may use a program of its own.
    directory = build_once(cache_directory() / f"bench-load-{content_digest(sources)}", sources, _build)
    return Generator((str(directory / "load"),), f"bench/load on franz-go {franz_go_version()}", is_go=True)


def librdkafka_generator(reason: str) -> Generator:
    from confluent_kafka import libversion  # noqa: PLC0415 - needed only if it is the generator

    return Generator(
        (sys.executable, "-P", str(LIBRDKAFKA)), f"bench/librdkafka_load.py on librdkafka {libversion()[0]} ({reason})"
    )


def choose(choice: Choice) -> Generator:
    """Go's if Go is installed and the build succeeds, else librdkafka's. An explicit choice of Go must succeed."""
    if choice == "librdkafka":
        return librdkafka_generator("chosen by --generator")
    if choice == "auto" and shutil.which("go") is None:
        return librdkafka_generator("Go is not installed")
    try:
        return go_generator()
    except GeneratorError as failure:
        if choice == "go":
            raise
        return librdkafka_generator(f"bench/load did not build: {str(failure).splitlines()[-1]}")
