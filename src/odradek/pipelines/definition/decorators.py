"""Pipelines defined in Python: the same keys as in YAML, as keyword arguments; `from_` stands for `from`.

    rigs = Pipeline("rigs", dead_letters="rigs-dead-letters")
    rigs.source("readings", topic="rigs", schema="hcid BIGINT, pressure DOUBLE")

    @rigs.step(from_="readings")
    def warnings(readings):
        return readings.where("pressure > 100")

    rigs.sink("alerts", from_="warnings", topic="warnings", key="hcid")

The running call is found in the syntax tree of its file by its position. A literal in the call has its own place; a
value that was computed elsewhere has the place of the argument.

A decorated function is returned unchanged, and is referred to by its import path. The methods only collect: `loading`
parses and checks the definition, by the same rules as for YAML.
"""

from __future__ import annotations

import ast
import datetime
import functools
import sys
from collections.abc import Callable
from enum import Enum
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from odradek.conventions.dataclass import dataclass
from odradek.pipelines.definition.keys import PIPELINE, VIEW, Kind
from odradek.pipelines.definition.nodes import ListNode, MappingNode, Node, Scalar
from odradek.pipelines.definition.places import Place, Problems, Segment

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import FrameType

Function = TypeVar("Function", bound=Callable[..., Any])
SECTIONS = tuple(each.name for each in PIPELINE.keys if each.kind is Kind.NAMED)


class Decorator(Protocol):
    """A decorator that returns the function unchanged."""

    def __call__(self, function: Function) -> Function: ...


class Pipeline:
    """Collects a definition call by call."""

    def __init__(self, name: str, **settings: Any) -> None:
        site = call_site(sys._getframe(1))  # noqa: SLF001 - the definition's place is that of the calling frame
        self._problems = Problems()
        self._place = site.place
        self._settings = [("pipeline", to_node(name, site.positional(0), site.place))]
        self._settings += self._arguments(settings, site)
        self._entries: dict[str, list[tuple[Scalar, Node]]] = {section: [] for section in SECTIONS}

    def source(self, name: str, **settings: Any) -> None:
        """Declares a source."""
        site = call_site(sys._getframe(1))  # noqa: SLF001
        self._add("sources", name, settings, site)

    def step(self, name: str | None = None, **settings: Any) -> Decorator:
        """Declares a step (`sql=…`, `aggregate=…`), or returns a decorator for a function of DataFrames."""
        return self._declare("steps", name, settings, call_site(sys._getframe(1)))  # noqa: SLF001

    def sink(self, name: str | None = None, **settings: Any) -> Decorator:
        """Declares a sink (`topic=…`), or returns a decorator for a function of a batch and its id."""
        return self._declare("sinks", name, settings, call_site(sys._getframe(1)))  # noqa: SLF001

    def view(self, name: str | None = None, **settings: Any) -> Decorator:
        """Declares a view of a source or step; as a decorator, declares the function as a step and a view of it."""
        site = call_site(sys._getframe(1))  # noqa: SLF001
        if name is not None:
            self._add("views", name, settings, site)

        def decorate(function: Function) -> Function:
            view = {key: value for key, value in settings.items() if key in VIEW.names}
            step = {key: value for key, value in settings.items() if key not in view}
            self._add("steps", name or function.__name__, {**step, "python": path_of(function), "view": view}, site)
            if name is not None:
                self._entries["views"].pop()
            return function

        return decorate

    def function(self, name: str | None = None, **settings: Any) -> Decorator:
        """Declares a function that SQL can call (`python=…`, `returns=…`), or returns a decorator for one."""
        return self._declare("functions", name, settings, call_site(sys._getframe(1)))  # noqa: SLF001

    def tree(self, problems: Problems) -> MappingNode:
        """The definition as YAML would give it. Arguments that no definition can have are reported."""
        for each in self._problems:
            problems.error(each.place, each.message, each.hint)
        sections: list[tuple[str, Node]] = [
            (section, MappingNode(tuple(entries), self._place)) for section, entries in self._entries.items() if entries
        ]
        entries = tuple((Scalar(key, key, node.place), node) for key, node in (*self._settings, *sections))
        return MappingNode(entries, self._place)

    def _declare(self, section: str, name: str | None, settings: dict[str, Any], site: CallSite) -> Decorator:
        """Declares at once if the name is given, otherwise when the decorator is applied to a function."""
        if name is not None:
            self._add(section, name, settings, site)

        def decorate(function: Function) -> Function:
            if name is not None:
                self._entries[section].pop()
            self._add(section, name or function.__name__, {**settings, "python": path_of(function)}, site)
            return function

        return decorate

    def _add(self, section: str, name: str, settings: dict[str, Any], site: CallSite) -> None:
        place = place_at(site.positional(0), site.place)
        entries = tuple((Scalar(key, key, node.place), node) for key, node in self._arguments(settings, site))
        self._entries[section].append((Scalar(name, name, place), MappingNode(entries, site.place)))

    def _arguments(self, settings: dict[str, Any], site: CallSite) -> list[tuple[str, Node]]:
        found = []
        for key, value in settings.items():
            source = site.argument(key)
            try:
                found.append((key.removesuffix("_"), to_node(value, source, site.place)))
            except TypeError as error:
                self._problems.error(place_at(source, site.place), f"{key}: {error}", "text, numbers, lists, dicts")
        return found


def path_of(function: Callable[..., Any]) -> str:
    """The import path of a function, by which workers import it."""
    return f"{function.__module__}:{function.__qualname__}"


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
    calls = (node for node in ast.walk(source_tree(file)) if isinstance(node, ast.Call))
    found = (node for node in calls if (node.lineno, node.end_lineno, node.col_offset, node.end_col_offset) == position)
    line, _, column, _ = position
    return CallSite(Place(file, line or frame.f_lineno, (column or 0) + 1), next(found, None))


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
