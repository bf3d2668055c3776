"""Seeds of simulations: the first few run in `make test`, the next in `make more`, and those that a variable of the
environment names instead of both."""

from __future__ import annotations

import os
from typing import Any

import pytest


def chosen_seeds(variable: str, otherwise: range) -> range:
    """The seeds that the variable names, such as 100-199."""
    given = os.environ.get(variable)
    if not given:
        return otherwise
    first, _, last = given.partition("-")
    return range(int(first), int(last or first) + 1)


def seed_parameters(variable: str, otherwise: range, *, quick: int) -> list[Any]:
    """Parameters of a test; of the seeds that run otherwise, those after the first `quick` are in the suite `more`."""
    chosen = chosen_seeds(variable, otherwise)
    if chosen is not otherwise:
        return list(chosen)
    return [*otherwise[:quick], *(pytest.param(seed, marks=pytest.mark.more) for seed in otherwise[quick:])]
