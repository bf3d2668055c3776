"""Reads `simulator.yml`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.pipelines.definition.places import Place, ProblemList, Problems
from odradek.pipelines.definition.text_files import read_text
from odradek.pipelines.definition.yaml_nodes import read_yaml
from odradek.pipelines.examples.simulator.parsing import parse_simulation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.pipelines.examples.simulator.model import Simulation


def load_simulation(file: str, environment: Mapping[str, str]) -> Simulation:
    """The simulation of a file; raises `ProblemList` with all its problems."""
    problems = Problems()
    text = read_text(file, problems)
    root = None if text is None else read_yaml(text, file, environment, problems)
    if root is None and not problems.errors:
        problems.error(Place(file, 1, 1), "the file is empty", "start with `topic: name`")
    simulation = None if root is None else parse_simulation(root, problems)
    if simulation is None:
        raise ProblemList(problems)
    return simulation
