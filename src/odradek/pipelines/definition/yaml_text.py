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


def scalar_segments(node: yaml.ScalarNode, lines: list[str]) -> tuple[Segment, ...]:
    """One segment for each part of the value that lies in one line of the file."""
    first, last = node.start_mark.line, node.end_mark.line
    if node.style == "|":
        return literal_segments(node, lines)
    if node.style == ">":
        return found_segments(node.value, [(number, lines[number], 0) for number in range(first + 1, last + 1)])
    quote = 1 if node.style else 0
    start_column = node.start_mark.column + quote
    if first == last:
        return (Segment(1, 1, first + 1, start_column + 1),)
    rest = [(number, lines[number], 0) for number in range(first + 1, min(last + 1, len(lines)))]
    return found_segments(node.value, [(first, lines[first][start_column:], start_column), *rest])


def literal_segments(node: yaml.ScalarNode, lines: list[str]) -> tuple[Segment, ...]:
    """The segments of a block after `|`: one per line, shifted by the indentation."""
    begin = node.start_mark.line + 1
    content = node.value.split("\n")
    taken = lines[begin : begin + len(content)]
    indents = [
        len(line) - len(value)
        for line, value in zip(taken, content, strict=False)
        if value.strip() and line.endswith(value)
    ]
    indent = indents[0] if indents else 0
    return tuple(Segment(i + 1, 1, begin + i + 1, indent + 1) for i in range(len(taken)))


def found_segments(value: str, parts: list[tuple[int, str, int]]) -> tuple[Segment, ...]:
    """The segments of a folded text: each line of the file is searched for in the value, in order."""
    segments = []
    cursor = 0
    for number, line, shift in parts:
        stripped = line.strip().rstrip("\"'") if number == parts[-1][0] else line.strip()
        if not stripped:
            continue
        position = value.find(stripped, cursor)
        if position < 0:
            continue
        value_line, value_column = line_and_column(value, position)
        indent = len(line) - len(line.lstrip())
        segments.append(Segment(value_line, value_column, number + 1, shift + indent + 1))
        cursor = position + len(stripped)
    return tuple(segments)


def line_and_column(text: str, position: int) -> tuple[int, int]:
    """The line and column (both from 1) of a position in a text."""
    before = text[:position]
    return before.count("\n") + 1, position - (before.rfind("\n") + 1) + 1


def substitute(
    raw: str, place: Place, value_of: Callable[[re.Match[str], Place], str]
) -> tuple[str, tuple[Segment, ...]]:
    """The text with its variables replaced, and its segments."""
    out: list[str] = []
    length = 0
    cursor = 0
    kept: list[tuple[int, int]] = [(0, 0)]  # corresponding positions in the raw and in the new text

    def add(piece: str) -> None:
        nonlocal length
        out.append(piece)
        length += len(piece)

    for match in VARIABLE.finditer(raw):
        add(raw[cursor : match.start()])
        cursor = match.end()
        is_literal = match["name"] is None and match["file"] is None
        where = place.inside(*line_and_column(raw, match.start()))
        add(match.group()[1:] if is_literal else value_of(match, where))
        kept.append((cursor, length))
    add(raw[cursor:])
    text = "".join(out)
    return text, tuple(moved_segments(raw, text, place, kept))


def moved_segments(raw: str, text: str, place: Place, kept: list[tuple[int, int]]) -> list[Segment]:
    """The segments of the new text: one at each line start of the raw text, and one after each variable."""
    starts = [position + 1 for position, character in enumerate(raw) if character == "\n"]
    segments = []
    for raw_position in sorted({0, *starts, *(each for each, _ in kept)}):
        anchor, new_anchor = max(pair for pair in kept if pair[0] <= raw_position)
        new_position = new_anchor + raw_position - anchor
        where = place.inside(*line_and_column(raw, raw_position))
        segments.append(Segment(*line_and_column(text, new_position), where.line, where.column))
    return segments
