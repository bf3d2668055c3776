"""Odradek as a broker to measure: the sources of one version, or any command that is given a port and a directory."""

import os
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path

from bench.brokers import PROPERTIES, BrokerError, client_listeners
from bench.results import ODRADEK

SOURCE = Path(__file__).parent.parent / "src"


@dataclass(frozen=True, slots=True)
class Odradek:
    """`template`, where given, is a command line in which {port} and {directory} are filled in."""

    template: str | None = None
    key: str = ODRADEK
    source: Path = SOURCE
    """The directory that holds the package `odradek`."""
    given_title: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    ssl_port: int | None = None

    @property
    def title(self) -> str:
        if self.template is not None:
            return "the given broker"
        return self.given_title or f"Odradek {version('odradek')}"

    @property
    def is_odradek(self) -> bool:
        return True

    def member(self, properties: Mapping[str, str]) -> "Odradek":
        if self.template is not None:
            raise BrokerError("a given command cannot be measured as a cluster")
        return replace(self, properties=properties)

    def secured(self, ssl_port: int, properties: Mapping[str, str]) -> "Odradek":
        return replace(self, ssl_port=ssl_port, properties={**self.properties, **properties})

    def prepare(self, directory: Path, port: int) -> None:
        pass

    def environment(self) -> dict[str, str]:
        return environment_of(self.source)

    def command(self, directory: Path, port: int) -> list[str]:
        data = directory / "data"
        if self.template is not None:
            return [part.format(port=port, directory=data) for part in shlex.split(self.template)]
        properties = {
            "listeners": ",".join(client_listeners(port, self.ssl_port)),
            "log.dirs": str(data),
            **PROPERTIES,
            **self.properties,
        }
        overrides = [part for name, value in properties.items() for part in ("--override", f"{name}={value}")]
        return [sys.executable, "-m", "odradek", "broker", *overrides]


def environment_of(source: Path) -> dict[str, str]:
    """An environment in which `import odradek` finds `source`, whatever is installed."""
    others = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": f"{source}{os.pathsep}{others}" if others else str(source)}
