"""Who reads whom: the lineage of a pipeline, and an order in which everything comes after what it reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from odradek.pipelines.definition.model import Join, PythonFunction, Sql, Step
from odradek.pipelines.definition.sql_text import SqlError, parse_query, tables_read

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from odradek.pipelines.definition.model import Pipeline, Sink, Source, View
    from odradek.pipelines.definition.places import Place


@dataclass(frozen=True, slots=True)
class Reference:
    """A name that something reads, and where it says so."""

    name: str
    place: Place


@dataclass(frozen=True, slots=True)
class Graph:
    """Inputs by name, and all sources and steps so that each comes after its inputs."""

    inputs: Mapping[str, tuple[str, ...]]
    order: tuple[str, ...]

    def upstream(self, name: str) -> list[str]:
        """Everything that a source or step depends on and itself, in order."""
        wanted = {name}
        for each in reversed(self.order):
            if each in wanted:
                wanted.update(self.inputs.get(each, ()))
        return [each for each in self.order if each in wanted]


def place_of(thing: Source | Step | Sink | View, *path: str) -> Place:
    """Where a value below a source, step, sink or view stands; as near as is known."""
    for length in range(len(path), 0, -1):
        found = thing.places.get("/".join(path[:length]))
        if found is not None:
            return found
    return thing.place


def references(step: Step) -> list[Reference]:
    """What a step reads, by the words that it uses; nothing of SQL that cannot be read."""
    operation = step.operation
    if isinstance(operation, Sql):
        try:
            tables = tables_read(parse_query(operation.text))
        except SqlError:
            return []
        return [Reference(each.name, operation.place.inside(each.line, each.column)) for each in tables]
    if isinstance(operation, PythonFunction):
        return [Reference(name, place_of(step, "from", name)) for name in operation.inputs]
    found = [Reference(operation.input, place_of(step, "from", operation.input))]
    if isinstance(operation, Join):
        found.append(Reference(operation.table, place_of(step, "join", "table")))
    return found


def build_graph(pipeline: Pipeline) -> Graph:
    """The graph of a pipeline; names that nobody declared are left out, as are steps that read themselves."""
    names = [each.name for each in pipeline.sources] + [each.name for each in pipeline.steps]
    declared = {name.lower(): name for name in names}
    inputs: dict[str, tuple[str, ...]] = {}
    for step in pipeline.steps:
        read = [declared.get(each.name.lower()) for each in references(step)]
        inputs[step.name] = tuple(dict.fromkeys(name for name in read if name is not None))
    return Graph(inputs, tuple(ordered(list(dict.fromkeys(declared.values())), inputs)))


def ordered(names: Sequence[str], inputs: Mapping[str, tuple[str, ...]]) -> list[str]:
    """Inputs first, otherwise as declared; what stands in a circle is left out."""
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
    """Circles of steps that read one another, each from the name that was declared first and back to it."""
    in_circle = [name for name in inputs if name in reachable(name, inputs)]
    cycles: list[list[str]] = []
    told: set[str] = set()
    for name in in_circle:
        if name not in told:
            path = shortest_path(name, inputs)
            told.update(path)
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
    """From a name along its inputs back to itself."""
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
