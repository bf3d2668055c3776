"""The dependency graph of sources and steps, its topological order and its cycles."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.conventions.dataclass import dataclass
from odradek.pipelines.definition.model import place_of
from odradek.pipelines.definition.operations import Join, PythonFunction, Sql, StreamJoin
from odradek.pipelines.definition.sql_text import SqlError, parse_query, tables_read

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from odradek.pipelines.definition.model import Pipeline, Step
    from odradek.pipelines.definition.places import Place


@dataclass(frozen=True, slots=True)
class Reference:
    """The name of an input, and the place where it is written."""

    name: str
    place: Place


@dataclass(frozen=True, slots=True)
class Graph:
    """The inputs of each step by name, and all sources and steps in topological order; `incomplete` are the steps that
    name an undeclared input, or whose SQL cannot be parsed."""

    inputs: Mapping[str, tuple[str, ...]]
    order: tuple[str, ...]
    incomplete: frozenset[str]

    def upstream(self, name: str) -> list[str]:
        """A source or step and everything that it depends on, in topological order."""
        wanted = {name}
        for each in reversed(self.order):
            if each in wanted:
                wanted.update(self.inputs.get(each, ()))
        return [each for each in self.order if each in wanted]


def references(step: Step) -> list[Reference]:
    """The inputs that a step names; none if its SQL cannot be parsed."""
    return known_references(step) or []


def known_references(step: Step) -> list[Reference] | None:
    """The inputs that a step names; None if its SQL cannot be parsed."""
    operation = step.operation
    if isinstance(operation, Sql):
        try:
            tables = tables_read(parse_query(operation.text))
        except SqlError:
            return None
        return [Reference(each.name, operation.place.inside(each.line, each.column)) for each in tables]
    if isinstance(operation, PythonFunction):
        return [Reference(name, place_of(step, "from", name)) for name in operation.inputs]
    found = [Reference(operation.input, place_of(step, "from", operation.input))]
    if isinstance(operation, Join):
        found.append(Reference(operation.table, place_of(step, "join", "table")))
    if isinstance(operation, StreamJoin):
        found.append(Reference(operation.stream, place_of(step, "join", "stream")))
    return found


def build_graph(pipeline: Pipeline) -> Graph:
    """The graph of a pipeline. Undeclared names are left out; steps in a cycle are left out of the order."""
    names = [each.name for each in pipeline.sources] + [each.name for each in pipeline.steps]
    declared = {name.lower(): name for name in names}
    inputs: dict[str, tuple[str, ...]] = {}
    incomplete: set[str] = set()
    for step in pipeline.steps:
        found = known_references(step)
        read = [declared.get(each.name.lower()) for each in found or ()]
        inputs[step.name] = tuple(dict.fromkeys(name for name in read if name is not None))
        if found is None or None in read:
            incomplete.add(step.name)
    return Graph(inputs, tuple(ordered(list(dict.fromkeys(declared.values())), inputs)), frozenset(incomplete))


def ordered(names: Sequence[str], inputs: Mapping[str, tuple[str, ...]]) -> list[str]:
    """Topological order, by declaration where that leaves a choice; names in a cycle and behind it are left out."""
    order: list[str] = []
    placed: set[str] = set()
    waiting = list(names)
    while waiting:
        ready = [name for name in waiting if all(each in placed for each in inputs.get(name, ()))]
        if not ready:
            break
        order += ready
        placed.update(ready)
        waiting = [name for name in waiting if name not in placed]
    return order


def find_cycles(inputs: Mapping[str, tuple[str, ...]]) -> list[list[str]]:
    """Cycles of steps, each as a path from its first declared name back to that name."""
    in_cycle = [name for name in inputs if name in reachable(name, inputs)]
    cycles: list[list[str]] = []
    covered: set[str] = set()
    for name in in_cycle:
        if name not in covered:
            path = shortest_path(name, inputs)
            covered.update(path)
            cycles.append(path)
    return cycles


def reachable(name: str, inputs: Mapping[str, tuple[str, ...]]) -> set[str]:
    seen: set[str] = set()
    waiting = list(inputs.get(name, ()))
    while waiting:
        each = waiting.pop()
        if each not in seen:
            seen.add(each)
            waiting += inputs.get(each, ())
    return seen


def shortest_path(name: str, inputs: Mapping[str, tuple[str, ...]]) -> list[str]:
    """The shortest path from a name along its inputs back to itself."""
    paths: list[list[str]] = [[name]]
    seen: set[str] = set()
    for path in paths:
        for each in inputs.get(path[-1], ()):
            if each == name:
                return [*path, name]
            if each not in seen:
                seen.add(each)
                paths.append([*path, each])
    return [name]


def used_names(pipeline: Pipeline, graph: Graph) -> set[str]:
    """Sources and steps that reach a sink or a view."""
    ends = [each.input for each in pipeline.sinks] + [each.input for each in pipeline.views]
    used: set[str] = set()
    for end in ends:
        used |= {end} | reachable(end, graph.inputs)
    return used
