"""JSON documents: their text, and paths into them: `$.pump.id`, `$.readings[0]`, `$.readings[*].value`, `$..password`.

Names with other characters stand in quotes: `$['card number']`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

_STEP = re.compile(r"\.\.(?P<anywhere>[\w-]+)|\.(?P<name>[\w-]+|\*)|\[(?P<index>\d{1,9}|\*)\]|\['(?P<quoted>[^']+)'\]")
STEPS_LIMIT = 32
NOT_JSON = object()


class Step(NamedTuple):
    """`key` is a name, an index, or None for every element. `is_anywhere`: at any depth below."""

    key: str | int | None
    is_anywhere: bool = False


JsonPath = tuple[Step, ...]


class PathError(ValueError):
    """A path that cannot be read; the message says why."""


def parse_path(text: str) -> JsonPath:
    text = text.strip()
    if not text.startswith("$"):
        raise PathError(f"{text!r} is not a JSON path; write $.name, $.list[0].name or $..name")
    steps: list[Step] = []
    position = 1
    while position < len(text):
        match = _STEP.match(text, position)
        if match is None or len(steps) >= STEPS_LIMIT:
            wrong = f"{text!r} is not a JSON path from {text[position:]!r} on"
            raise PathError(f"{wrong}; write $.name, $.list[0] or $..name")
        position = match.end()
        steps.append(_step(match))
    return tuple(steps)


def _step(match: re.Match[str]) -> Step:
    if match["anywhere"] is not None:
        return Step(match["anywhere"], is_anywhere=True)
    if match["index"] is not None:
        return Step(None if match["index"] == "*" else int(match["index"]))
    name = match["quoted"] if match["quoted"] is not None else match["name"]
    return Step(None if match["quoted"] is None and name == "*" else name)


class Location(NamedTuple):
    """An element of an object or a list."""

    container: Any
    key: Any

    @property
    def value(self) -> Any:
        return self.container[self.key]


def locations(document: Any, path: JsonPath) -> list[Location]:
    """The elements that a path leads to, each once. The whole document is `[document][0]`."""
    found = [Location([document], 0)]
    for step in path:
        found = take_step([each.value for each in found], step)
    return found


def take_step(values: Iterable[Any], step: Step) -> list[Location]:
    if step.is_anywhere:
        return list(_anywhere(values, step.key))
    return [inner for value in values for inner in _below(value, step)]


def all_below(values: Iterable[Any]) -> Iterator[Location]:
    """Every element at any depth, once."""
    waiting, visited = list(values), set[int]()
    while waiting:
        present = waiting.pop()
        if id(present) in visited or not isinstance(present, dict | list):
            continue
        visited.add(id(present))
        for key in list(present) if isinstance(present, dict) else range(len(present)):
            yield Location(present, key)
            waiting.append(present[key])


def can_have(value: Any, step: Step) -> bool:
    """Whether the value is of a type in which the step leads somewhere."""
    if isinstance(value, dict):
        return not isinstance(step.key, int)
    return isinstance(value, list) and (step.is_anywhere or not isinstance(step.key, str))


def _below(value: Any, step: Step) -> Iterator[Location]:
    if isinstance(value, dict):
        if step.key is None:
            yield from (Location(value, key) for key in list(value))
        elif step.key in value:
            yield Location(value, step.key)
    elif isinstance(value, list):
        if step.key is None:
            yield from (Location(value, index) for index in range(len(value)))
        elif isinstance(step.key, int) and step.key < len(value):
            yield Location(value, step.key)


def _anywhere(values: Iterable[Any], key: Any) -> Iterator[Location]:
    """Values may be inside each other, as those of `$..a..a` are: everything below them is visited once."""
    visited: set[int] = set()
    waiting = list(values)
    waiting.reverse()
    while waiting:
        present = waiting.pop()
        if id(present) in visited:
            continue
        if isinstance(present, dict | list):
            visited.add(id(present))
        if isinstance(present, dict):
            if key in present:
                yield Location(present, key)
            waiting += present.values()
        elif isinstance(present, list):
            waiting += present


def parse_json(value: bytes) -> Any:
    """The document, or NOT_JSON."""
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return NOT_JSON


def write_json(document: Any, **settings: Any) -> str:
    """Text that UTF-8 can hold: a document may contain halves of surrogate pairs, which it cannot."""
    text = json.dumps(document, ensure_ascii=False, **settings)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(document, **settings)
    return text


def indent_json(document: Any, characters: int) -> str:
    """The first characters of the indented document. No more is built: a small document may be huge indented."""
    for is_ascii in (False, True):
        pieces: list[str] = []
        left = characters
        for piece in json.JSONEncoder(ensure_ascii=is_ascii, indent=2).iterencode(document):
            pieces.append(piece[:left])
            left -= len(piece)
            if left <= 0:
                break
        text = "".join(pieces)
        try:
            text.encode()
        except UnicodeEncodeError:  # halves of surrogate pairs
            continue
        return text
    return ""  # unreachable: ASCII can be encoded
