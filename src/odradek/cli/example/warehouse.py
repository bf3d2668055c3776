"""The warehouse of an example's pipeline, from its definition."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from odradek.pipelines.definition.nodes import MappingNode, Scalar
from odradek.pipelines.definition.places import Problems
from odradek.pipelines.definition.text_files import read_text
from odradek.pipelines.definition.yaml_nodes import read_yaml

if TYPE_CHECKING:
    from odradek.pipelines.examples.folders import Example

SQLITE = "sqlite:///"


def warehouse_of(example: Example) -> str | None:
    """The URL of the definition, with the path of a SQLite file resolved from its folder; None without one."""
    problems = Problems()
    text = read_text(example.definition, problems)
    root = None if text is None else read_yaml(text, example.definition, os.environ, problems)
    if not isinstance(root, MappingNode):
        return None
    found, name = root.get("warehouse"), root.get("pipeline")
    if isinstance(found, Scalar) and found.text:
        url = found.text
    elif isinstance(name, Scalar):
        url = f"{SQLITE}{name.text}.db"
    else:
        return None
    if not url.startswith(SQLITE):
        return url
    file = Path(example.folder).absolute() / url.removeprefix(SQLITE)
    return f"{SQLITE}{file}" if file.exists() else None
