"""Reads `view.yml`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.pipelines.definition.places import Place, ProblemList, Problems
from odradek.pipelines.definition.text_files import read_text
from odradek.pipelines.definition.yaml_nodes import read_yaml
from odradek.pipelines.examples.live_view.parsing import parse_view

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.pipelines.examples.live_view.definition import ViewDefinition


def load_view(file: str, environment: Mapping[str, str]) -> ViewDefinition:
    """The live view of a file; raises `ProblemList` with all its problems."""
    problems = Problems()
    text = read_text(file, problems)
    root = None if text is None else read_yaml(text, file, environment, problems)
    if root is None and not problems.errors:
        problems.error(Place(file, 1, 1), "the file is empty", "start with `title: …`")
    view = None if root is None else parse_view(root, problems)
    if view is None:
        raise ProblemList(problems)
    return view
