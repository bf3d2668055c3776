"""Maps positions in a YAML scalar to positions in the file, and replaces `${…}`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from odradek.pipelines.definition.places import Place, Segment

if TYPE_CHECKING:
    from collections.abc import Callable

    import yaml

VARIABLE = re.compile(
    r"\$(\$\{[^}]*\}|\{((?P<name>[A-Za-z_][A-Za-z0-9_]*)|file:(?P<file>[^}]+?))(:-(?P<default>[^}]*))?\})"
)
UNCLOSED = re.compile(r"(?<!\$)\$\{(?:[A-Za-z_]|file:)[^}]*\Z")


def scalar_segments(node: yaml.ScalarNode, lines: list[str]) -> tuple[Segment, ...]:
    """One segment for each part of the value that lies in one line of the file; none for text that YAML folds."""
    first, last = node.start_mark.line, node.end_mark.line
    if node.style == "|":
        return literal_segments(node, lines)
    return (Segment(1, 1, first + 1, node.start_mark.column + bool(node.style) + 1),) if first == last else ()


def literal_segments(node: yaml.ScalarNode, lines: list[str]) -> tuple[Segment, ...]:
    """The segments of a block after `|`: one per line, shifted by the indentation."""
    begin = node.start_mark.line + 1
    content = node.value.split("\n")
    taken = lines[begin : begin + len(content)]
    pairs = zip(taken, content, strict=False)
    indents = (len(line) - len(value) for line, value in pairs if value.strip() and line.endswith(value))
    indent = next(indents, 0)
    return tuple(Segment(i + 1, 1, begin + i + 1, indent + 1) for i in range(len(taken)))


def line_and_column(text: str, position: int) -> tuple[int, int]:
    """The line and column (both from 1) of a position in a text."""
    before = text[:position]
    return before.count("\n") + 1, position - (before.rfind("\n") + 1) + 1


def substitute(
    raw: str, place: Place, value_of: Callable[[re.Match[str], Place], str]
) -> tuple[str, tuple[Segment, ...]]:
    """The text with its variables replaced, and its segments: one at each line of the raw text, and one after each
    variable."""
    text, cursor = "", 0
    kept = [(0, 0)]  # corresponding positions in the raw and in the new text
    for match in VARIABLE.finditer(raw):
        is_literal = match["name"] is None and match["file"] is None
        where = place.inside(*line_and_column(raw, match.start()))
        text += raw[cursor : match.start()] + (match.group()[1:] if is_literal else value_of(match, where))
        cursor = match.end()
        kept.append((cursor, len(text)))
    text += raw[cursor:]
    starts = {position + 1 for position, character in enumerate(raw) if character == "\n"}
    segments = []
    for position in sorted({*starts, *(each for each, _ in kept)}):
        anchor, new_anchor = max(pair for pair in kept if pair[0] <= position)
        where = place.inside(*line_and_column(raw, position))
        segments.append(Segment(*line_and_column(text, new_anchor + position - anchor), where.line, where.column))
    return text, tuple(segments)


def unclosed(raw: str) -> re.Match[str] | None:
    """The first variable without its closing brace, or with that of another one."""
    nested = next((each for each in VARIABLE.finditer(raw) if "${" in (each["default"] or "")), None)
    return nested or UNCLOSED.search(VARIABLE.sub(lambda each: " " * len(each.group()), raw))
