"""Reads the files of an example: `simulator.yml` and `view.yml`."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from odradek.pipelines.definition.places import Place, ProblemList, Problems
from odradek.pipelines.definition.substituting import read_yaml
from odradek.pipelines.definition.yaml_nodes import read_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from odradek.pipelines.definition.nodes import Node

T = TypeVar("T")


def load_declared(
    file: str, environment: Mapping[str, str], parse: Callable[[Node, Problems], T | None], first_line: str
) -> T:
    """What `parse` makes of a file; raises `ProblemList` with all its problems."""
    problems = Problems()
    text = read_text(file, problems)
    root = None if text is None else read_yaml(text, file, environment, problems)
    if root is None and not problems.errors:
        problems.error(Place(file, 1, 1), "the file is empty", f"start with `{first_line}`")
    found = None if root is None else parse(root, problems)
    if found is None:
        raise ProblemList(problems)
    return found
