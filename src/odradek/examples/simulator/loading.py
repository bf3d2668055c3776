"""Reads `simulator.yml`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.examples.declared_files import load_declared
from odradek.examples.simulator.parsing import parse_simulation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.examples.simulator.model import Simulation


def load_simulation(file: str, environment: Mapping[str, str]) -> Simulation:
    return load_declared(file, environment, parse_simulation, "topic: name")
