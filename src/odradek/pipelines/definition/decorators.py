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

import sys
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from odradek.pipelines.definition.keys import PIPELINE, VIEW, Kind
from odradek.pipelines.definition.nodes import MappingNode, Node, Scalar
from odradek.pipelines.definition.places import Problems
from odradek.pipelines.definition.python_nodes import CallSite, call_site, place_at, to_node

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
        entries = tuple(
            (Scalar(key, key, node.place), node) for key, node in self._arguments(settings, site)
        )  # fmt: skip
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
