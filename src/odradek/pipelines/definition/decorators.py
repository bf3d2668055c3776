"""Pipelines defined in Python: the same keys as in YAML, as keyword arguments; `from_` stands for `from`.

    rigs = Pipeline("rigs", dead_letters="rigs-dead-letters")
    rigs.source("readings", topic="rigs", schema="hcid BIGINT, pressure DOUBLE")

    @rigs.step(from_="readings")
    def warnings(readings):
        return readings.where("pressure > 100")

    rigs.sink("alerts", from_="warnings", topic="warnings", key="hcid")

A decorated function is returned unchanged, and is referred to by its import path. The methods only collect: `loading`
parses and checks the definition, by the same rules as for YAML.
"""

from __future__ import annotations

import datetime
import sys
from collections.abc import Callable
from enum import Enum
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from odradek.pipelines.definition.keys import PIPELINE, VIEW, Kind
from odradek.pipelines.definition.nodes import ListNode, MappingNode, Node, Scalar
from odradek.pipelines.definition.places import Place, Problems

if TYPE_CHECKING:
    from types import FrameType

Function = TypeVar("Function", bound=Callable[..., Any])
SECTIONS = tuple(each.name for each in PIPELINE.keys if each.kind is Kind.NAMED)


class Decorator(Protocol):
    """A decorator that returns the function unchanged."""

    def __call__(self, function: Function) -> Function: ...


class Pipeline:
    """Collects a definition call by call."""

    def __init__(self, name: str, **settings: Any) -> None:
        self._place = place_of_call(sys._getframe(1))  # noqa: SLF001 - the place is that of the calling frame
        self._problems = Problems()
        self._settings = [("pipeline", to_node(name, self._place)), *self._arguments(settings, self._place)]
        self._entries: dict[str, list[tuple[Scalar, Node]]] = {section: [] for section in SECTIONS}

    def source(self, name: str, **settings: Any) -> None:
        """Declares a source."""
        self._add("sources", name, settings, place_of_call(sys._getframe(1)))  # noqa: SLF001

    def step(self, name: str | None = None, **settings: Any) -> Decorator:
        """Declares a step (`sql=…`, `aggregate=…`), or returns a decorator for a function of DataFrames."""
        return self._declare("steps", name, settings, place_of_call(sys._getframe(1)))  # noqa: SLF001

    def sink(self, name: str | None = None, **settings: Any) -> Decorator:
        """Declares a sink (`topic=…`), or returns a decorator for a function of a batch and its id."""
        return self._declare("sinks", name, settings, place_of_call(sys._getframe(1)))  # noqa: SLF001

    def view(self, name: str | None = None, **settings: Any) -> Decorator:
        """Declares a view of a source or step; as a decorator, declares the function as a step and a view of it."""
        place = place_of_call(sys._getframe(1))  # noqa: SLF001
        if name is not None:
            self._add("views", name, settings, place)

        def decorate(function: Function) -> Function:
            view = {key: value for key, value in settings.items() if key in VIEW.names}
            step = {key: value for key, value in settings.items() if key not in view}
            self._add("steps", name or function.__name__, {**step, "python": path_of(function), "view": view}, place)
            if name is not None:
                self._entries["views"].pop()
            return function

        return decorate

    def tree(self, problems: Problems) -> MappingNode:
        """The definition as YAML would give it. Arguments that no definition can have are reported."""
        for each in self._problems:
            problems.error(each.place, each.message, each.hint)
        sections: list[tuple[str, Node]] = [
            (section, MappingNode(tuple(entries), self._place)) for section, entries in self._entries.items() if entries
        ]
        entries = tuple((Scalar(key, key, node.place), node) for key, node in (*self._settings, *sections))
        return MappingNode(entries, self._place)

    def _declare(self, section: str, name: str | None, settings: dict[str, Any], place: Place) -> Decorator:
        """Declares at once if the name is given, otherwise when the decorator is applied to a function."""
        if name is not None:
            self._add(section, name, settings, place)

        def decorate(function: Function) -> Function:
            if name is not None:
                self._entries[section].pop()
            self._add(section, name or function.__name__, {**settings, "python": path_of(function)}, place)
            return function

        return decorate

    def _add(self, section: str, name: str, settings: dict[str, Any], place: Place) -> None:
        entries = tuple((Scalar(key, key, place), node) for key, node in self._arguments(settings, place))
        self._entries[section].append((Scalar(name, name, place), MappingNode(entries, place)))

    def _arguments(self, settings: dict[str, Any], place: Place) -> list[tuple[str, Node]]:
        found = []
        for key, value in settings.items():
            try:
                found.append((key.removesuffix("_"), to_node(value, place)))
            except TypeError as error:
                self._problems.error(place, f"{key}: {error}", "text, numbers, lists, dicts")
        return found


def path_of(function: Callable[..., Any]) -> str:
    """The import path of a function, by which workers import it."""
    return f"{function.__module__}:{function.__qualname__}"


def place_of_call(frame: FrameType) -> Place:
    """The line that the frame is executing."""
    return Place(frame.f_code.co_filename, frame.f_lineno, 1)


def to_node(value: Any, place: Place) -> Node:
    """Converts a value to a node; `TypeError` if a definition cannot contain it."""
    if isinstance(value, dict):
        entries = ((Scalar(str(key), str(key), place), to_node(item, place)) for key, item in value.items())
        return MappingNode(tuple(entries), place)
    if isinstance(value, list | tuple):
        return ListNode(tuple(to_node(item, place) for item in value), place)
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
    return Scalar(value, text, place)
