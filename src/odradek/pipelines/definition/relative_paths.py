"""Relative paths in an included file start at that file's folder: they are rewritten to start at the definition's."""

from __future__ import annotations

import posixpath
from pathlib import Path
from typing import TYPE_CHECKING

from odradek.pipelines.definition.nodes import MappingNode, Node, Scalar

if TYPE_CHECKING:
    from collections.abc import Sequence

EACH = "*"
PATHS = (
    ("sources", EACH, "files", "path"),
    ("sinks", EACH, "files", "path"),
    ("sinks", EACH, "lakehouse", "path"),
    ("checkpoints",),
)
URLS = (
    ("warehouse",),
    ("sources", EACH, "jdbc", "url"),
    ("sinks", EACH, "url"),
    ("views", EACH, "url"),
    ("steps", EACH, "view", "url"),
)
SQLITE = ("jdbc:sqlite:", "sqlite:///")


def with_relative_paths(root: MappingNode) -> MappingNode:
    """The definition with every relative path written from the definition's folder."""
    home = Path(root.place.file).parent.absolute()
    made: Node = root
    for path in (*PATHS, *URLS):
        made = changed(made, path, home, is_url=path in URLS)
    assert isinstance(made, MappingNode)
    return made


def changed(node: Node, path: Sequence[str], home: Path, *, is_url: bool) -> Node:
    if not path:
        return relocated(node, home, is_url=is_url) if isinstance(node, Scalar) else node
    if not isinstance(node, MappingNode):
        return node
    entries = tuple(
        (key, changed(value, path[1:], home, is_url=is_url) if path[0] in {key.text, EACH} else value)
        for key, value in node.entries
    )
    return MappingNode(entries, node.place)


def relocated(scalar: Scalar, home: Path, *, is_url: bool) -> Scalar:
    folder = Path(scalar.place.file).parent.absolute()
    if folder == home or not isinstance(scalar.value, str) or not scalar.value:
        return scalar
    prefix = next((each for each in SQLITE if scalar.value.startswith(each)), "") if is_url else ""
    rest = scalar.value.removeprefix(prefix)
    is_elsewhere = is_url and (not prefix or rest.startswith((":", "file:")))
    if is_elsewhere or "://" in rest or not rest or Path(rest).is_absolute():
        return scalar
    text = prefix + posixpath.join(posixpath.relpath(folder, home), rest)
    return Scalar(text, text, scalar.place, scalar.is_plain)
