"""Converts values of a Python definition to nodes with their places in the source.

The running call is found in the syntax tree of its file by its position. A literal in the call has its own place; a
value that was computed elsewhere has the place of the argument.
"""

from __future__ import annotations

import ast
import datetime
import functools
from enum import Enum
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from odradek.conventions.dataclass import dataclass
from odradek.pipelines.definition.nodes import ListNode, MappingNode, Node, Scalar
from odradek.pipelines.definition.places import Place, Segment

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import FrameType


@dataclass(frozen=True, slots=True)
class CallSite:
    """The call that defines something: its file, its place, and its syntax tree if the source is available."""

    place: Place
    call: ast.Call | None

    def argument(self, name: str) -> ast.expr | None:
        if self.call is None:
            return None
        return next((each.value for each in self.call.keywords if each.arg == name), None)

    def positional(self, index: int) -> ast.expr | None:
        return self.call.args[index] if self.call is not None and index < len(self.call.args) else None


def call_site(frame: FrameType) -> CallSite:
    """The call that the frame is executing."""
    file = frame.f_code.co_filename
    position = list(frame.f_code.co_positions())[frame.f_lasti // 2]
    line, end_line, column, end_column = position
    place = Place(file, line or frame.f_lineno, (column or 0) + 1)
    for node in ast.walk(source_tree(file)):
        if isinstance(node, ast.Call) and (node.lineno, node.end_lineno, node.col_offset, node.end_col_offset) == (
            line,
            end_line,
            column,
            end_column,
        ):
            return CallSite(place, node)
    return CallSite(place, None)


@functools.lru_cache(maxsize=16)
def source_tree(file: str) -> ast.Module:
    """The syntax tree of a file; empty if there is no source, as in an interactive session."""
    try:
        return ast.parse(Path(file).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return ast.Module([], [])


def place_at(source: ast.expr | None, around: Place) -> Place:
    return around if source is None else Place(around.file, source.lineno, source.col_offset + 1)


def to_node(value: Any, source: ast.expr | None, around: Place) -> Node:
    """Converts a value to a node; `TypeError` if a definition cannot contain it."""
    place = place_at(source, around)
    if isinstance(value, dict):
        return mapping_node(value, source, place)
    if isinstance(value, list | tuple):
        parts = source.elts if isinstance(source, ast.List | ast.Tuple) and len(source.elts) == len(value) else None
        return ListNode(
            tuple(to_node(item, parts[index] if parts else None, place) for index, item in enumerate(value)), place
        )
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, datetime.timedelta):
        value = f"{round(value / datetime.timedelta(milliseconds=1))} ms"
    elif isinstance(value, datetime.datetime):
        value = value.isoformat()
    elif isinstance(value, PurePath):
        value = str(value)
    if value is not None and not isinstance(value, str | int | float | bool):
        raise TypeError(f"{type(value).__name__} is not allowed in a pipeline definition")
    text = {True: "true", False: "false", None: ""}[value] if value is None or isinstance(value, bool) else str(value)
    return Scalar(value, text, text_place(value, source, place))


def mapping_node(value: Mapping[Any, Any], source: ast.expr | None, place: Place) -> MappingNode:
    written: dict[Any, tuple[ast.expr, ast.expr]] = {}
    if isinstance(source, ast.Dict):
        for key_source, value_source in zip(source.keys, source.values, strict=True):
            if isinstance(key_source, ast.Constant):
                written[key_source.value] = (key_source, value_source)
    entries = []
    for key, item in value.items():
        sources = written.get(key, (None, None))
        entries.append((Scalar(str(key), str(key), place_at(sources[0], place)), to_node(item, sources[1], place)))
    return MappingNode(tuple(entries), place)


def text_place(value: Any, source: ast.expr | None, place: Place) -> Place:
    """The place of a text; with the places of its lines if it is a single literal without escapes."""
    if not isinstance(value, str) or not isinstance(source, ast.Constant):
        return place
    lines = value.split("\n")
    end_line = source.end_lineno or source.lineno
    quotes = 3 if end_line > source.lineno or is_triple(source, value) else 1
    if end_line - source.lineno + 1 != len(lines):
        return place
    first = Segment(1, 1, source.lineno, source.col_offset + 1 + quotes)
    rest = tuple(Segment(number, 1, source.lineno + number - 1, 1) for number in range(2, len(lines) + 1))
    return Place(place.file, place.line, place.column, (first, *rest))


def is_triple(source: ast.Constant, value: str) -> bool:
    return (source.end_col_offset or 0) - source.col_offset == len(value) + 6
