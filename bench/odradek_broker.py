"""Odradek as a broker to measure: this checkout's, or any command that is given a port and a directory."""

import shlex
import sys
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from bench.brokers import PROPERTIES
from bench.results import ODRADEK


@dataclass(frozen=True, slots=True)
class Odradek:
    """`template`, where given, is a command line in which {port} and {directory} are filled in."""

    template: str | None = None
    key: str = ODRADEK

    @property
    def title(self) -> str:
        return f"Odradek {version('odradek')}" if self.template is None else "the given broker"

    def prepare(self, directory: Path, port: int) -> None:
        pass

    def command(self, directory: Path, port: int) -> list[str]:
        data = directory / "data"
        if self.template is not None:
            return [part.format(port=port, directory=data) for part in shlex.split(self.template)]
        properties = {"listeners": f"PLAINTEXT://127.0.0.1:{port}", "log.dirs": str(data), **PROPERTIES}
        overrides = [part for name, value in properties.items() for part in ("--override", f"{name}={value}")]
        return [sys.executable, "-m", "odradek", "broker", *overrides]
