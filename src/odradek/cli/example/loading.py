"""Reads the files of an example for the commands, with one line for a failure."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from odradek.conventions.failures import Failure
from odradek.pipelines.definition.places import ProblemList
from odradek.pipelines.examples.folders import Example, NoSuchExample, find_example
from odradek.pipelines.examples.live_view.loading import load_view
from odradek.pipelines.examples.simulator.loading import load_simulation

if TYPE_CHECKING:
    from odradek.pipelines.examples.live_view.definition import ViewDefinition
    from odradek.pipelines.examples.simulator.model import Simulation


def chosen_example(name: str) -> Example:
    try:
        return find_example(name)
    except NoSuchExample as error:
        raise Failure(str(error)) from None


def read_simulation(example: Example) -> Simulation:
    try:
        return load_simulation(example.simulator, os.environ)
    except ProblemList as error:
        raise failure_of(error) from None


def read_view(example: Example) -> ViewDefinition:
    try:
        return load_view(example.view, os.environ)
    except ProblemList as error:
        raise failure_of(error) from None


def failure_of(error: ProblemList) -> Failure:
    """All problems, one per line."""
    first, *rest = (f"{each.place}: {each.text}" for each in error)
    return Failure("\n".join([first, *rest]))
