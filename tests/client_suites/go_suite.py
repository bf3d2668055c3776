"""Suites in Go: `go test` of a module that go.mod pins, from the module cache, which stays as it is.

Where addresses of brokers are constants in the tests, these run from a copy of the module that has others.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.client_suites.suite import FAILED, PASSED, SKIPPED, Outcome, run_to_end
from tests.jvm.build_cache import build_once, cache_directory, content_digest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tests.client_suites.suite import Run

HERE = Path(__file__).parent
PINS = (HERE / "go.mod", HERE / "go.sum")
STATES = {"pass": PASSED, "fail": FAILED, "skip": SKIPPED}
TEST_FUNCTION = re.compile(r"^func (Test\w+)\(\w+ \*(?:testing|ktesting)\.T\)", re.MULTILINE)
REASON = re.compile(r"^\s+\S+\.go:\d+: ", re.MULTILINE)
TIMEOUT_MINUTES = 40
KEPT_OUTPUT = 2000


@dataclass(frozen=True, slots=True)
class GoPackage:
    module: str
    path: str
    needs_broker: str
    """A pattern in each file whose tests need a broker: other files are not run."""
    tags: str = ""

    def names(self) -> frozenset[str]:
        return frozenset(name for text in self.sources().values() for name in TEST_FUNCTION.findall(text))

    def sources(self) -> dict[Path, str]:
        directory = module_directory(self.module) / self.path.removeprefix(self.module).lstrip("/")
        texts = {file: file.read_text() for file in directory.glob("*_test.go")}
        return {file: text for file, text in texts.items() if re.search(self.needs_broker, text)}

    def test(self, run: Run, environment: Mapping[str, str], replaced: Mapping[str, str]) -> dict[str, Outcome]:
        names = self.names() - run.left_out
        module_file = self._copy_with(replaced, run.directory) if replaced else PINS[0]
        command = [
            "go", "test", "-json", "-count=1", "-vet=off", "-trimpath", f"-timeout={TIMEOUT_MINUTES}m",
            f"-tags={self.tags}", f"-modfile={module_file}", f"-run=^({'|'.join(sorted(names))})$",
            f"-skip={'|'.join(sorted(f'^{each}$' for each in run.left_out if '/' in each))}", self.path,
        ]  # fmt: skip
        events = run.directory / "events.jsonl"
        run_to_end(command, HERE, go_environment() | dict(environment), events, (TIMEOUT_MINUTES + 10) * 60)
        return read_events(events.read_text(errors="replace").splitlines(), names)

    def _copy_with(self, replaced: Mapping[str, str], directory: Path) -> Path:
        """A copy of the module, whose tests have other constants. Returns a go.mod that leads to it."""
        copied = shutil.copytree(module_directory(self.module), directory / "source", copy_function=shutil.copyfile)
        for folder, _, _ in os.walk(copied):
            Path(folder).chmod(0o755)
        for file, text in self.sources().items():
            new = text
            for old, value in replaced.items():
                new = new.replace(old, value)
            (copied / file.relative_to(module_directory(self.module))).write_text(new)
        for pins in PINS:
            shutil.copyfile(pins, directory / pins.name)
        _go("mod", "edit", f"-replace={self.module}={copied}", str(directory / "go.mod"))
        return directory / "go.mod"


def read_events(lines: Iterable[str], names: Iterable[str]) -> dict[str, Outcome]:
    """The outcomes in the output of `go test -json`. A test without one was interrupted, or not reached."""
    output: dict[str, list[str]] = {}
    outcomes = {name: Outcome(FAILED, "did not end") for name in names}
    for line in lines:
        event: dict[str, Any] = json.loads(line) if line.startswith("{") else {}
        name = event.get("Test", "").partition("/")[0]
        if event.get("Action") in ("output", "build-output"):
            output.setdefault(name, []).append(event["Output"])
        elif name and "/" not in event["Test"] and event.get("Action") in STATES:
            outcomes[name] = Outcome(STATES[event["Action"]])
    for name, outcome in outcomes.items():
        text = "".join(output.get(name, output.get("", [])))
        if outcome.state == FAILED:
            outcome.text = (outcome.text + "\n" + text[-KEPT_OUTPUT:]).strip()
        elif outcome.state == SKIPPED:
            outcome.text = REASON.split(text)[-1].partition("\n")[0]
    return outcomes


def go_environment() -> dict[str, str]:
    return {**os.environ, "GOFLAGS": "-mod=readonly"}  # go.mod and go.sum are the locked truth


@cache
def module_directory(module: str) -> Path:
    return Path(json.loads(_go("mod", "download", "-json", module))["Dir"])


def tool(package: str) -> Path:
    """A program of a module that go.mod pins, built once."""
    name = package.replace("/", "-")

    def build(directory: Path) -> None:
        _go("build", "-buildvcs=false", "-o", str(directory / "program"), package)

    return build_once(cache_directory() / f"{name}-{content_digest(PINS)}", PINS, build) / "program"


def _go(*arguments: str) -> str:
    done = subprocess.run(
        ["go", *arguments],
        cwd=HERE,
        env=go_environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"go {' '.join(arguments)} failed: {(done.stdout + done.stderr)[-KEPT_OUTPUT:]}")
    return done.stdout
