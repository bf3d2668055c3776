"""Indented JSON as parts that a page colours: names, strings, numbers, literals, and the text between them. Pure."""

from __future__ import annotations

import re
from typing import NamedTuple

LONGEST_TEXT = 20_000  # longer documents are shown in one colour: each part is an element of the page
PARTS = re.compile(
    r'(?P<name>"(?:[^"\\]|\\.)*"(?=:))|(?P<string>"(?:[^"\\]|\\.)*")'
    r"|(?P<number>-?\d[\d.eE+-]*)|(?P<literal>true|false|null|NaN|-?Infinity)"
)


class JsonPart(NamedTuple):
    kind: str  # name, string, number, literal; empty for the text between them
    text: str


def json_parts(text: str) -> list[JsonPart]:
    """The parts in their order: joined they are the text."""
    if len(text) > LONGEST_TEXT:
        return [JsonPart("", text)]
    parts: list[JsonPart] = []
    end = 0
    for found in PARTS.finditer(text):
        if found.start() > end:
            parts.append(JsonPart("", text[end : found.start()]))
        parts.append(JsonPart(found.lastgroup or "", found[0]))
        end = found.end()
    if end < len(text):
        parts.append(JsonPart("", text[end:]))
    return parts
