"""Which sources and steps are streams, and the event-time columns of their watermarks."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from odradek.conventions.dataclass import dataclass
from odradek.pipelines.definition.columns import known_columns, lookup
from odradek.pipelines.definition.known_functions import known_functions
from odradek.pipelines.definition.operations import Aggregation, KeyedState, StreamJoin
from odradek.pipelines.definition.vocabulary import StreamJoinKind
from odradek.pipelines.planning.null_columns import Column, Rows, Time
from odradek.pipelines.planning.null_queries import NullQueries
from odradek.pipelines.planning.queries import has_sessions, query_of
from odradek.pipelines.planning.time_zones import changing_zone

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from odradek.pipelines.definition.graph import Graph
    from odradek.pipelines.definition.model import Pipeline, Step
    from odradek.pipelines.definition.table_columns import Columns

NO_COLUMNS: frozenset[str] = frozenset()


def streaming_names(pipeline: Pipeline, graph: Graph) -> frozenset[str]:
    """The sources that are streams, and the steps that depend on one."""
    names = {each.name for each in pipeline.sources if each.is_stream}
    for name in graph.order:
        if names.intersection(graph.inputs.get(name, ())):
            names.add(name)
    return frozenset(names)


def ranged_names(pipeline: Pipeline) -> frozenset[str]:
    """The sources that a range of the log limits: the streams. A static topic is read whole, as in every batch of a
    stream, unless no source is a stream."""
    streams = frozenset(each.name for each in pipeline.sources if each.is_stream)
    return streams or frozenset(each.name for each in pipeline.sources)


@dataclass(frozen=True, slots=True)
class Streams:
    """Names of the sources and steps that are streams, and their columns of event time; also the columns of all sources
    and steps."""

    names: frozenset[str]
    times: Mapping[str, EventTimes]
    columns: Mapping[str, Columns | None]
    zone: str | None = None  # of the pipeline, if its clocks are set back

    @property
    def watermarks(self) -> dict[str, frozenset[str]]:
        """The columns of event time that are timestamps, in lower case."""
        return {name: each.moments for name, each in self.times.items()}

    @classmethod
    def of(cls, pipeline: Pipeline, graph: Graph, known: Mapping[str, Columns | None] | None = None) -> Streams:
        columns = known_columns(pipeline, graph) if known is None else known
        times = event_times(pipeline, graph, columns)
        return cls(streaming_names(pipeline, graph), times, columns, changing_zone(pipeline))

    @classmethod
    def with_types(cls, pipeline: Pipeline, graph: Graph) -> Streams:
        """The streams, with the types of computed columns."""
        return replace(cls.of(pipeline, graph), columns=known_columns(pipeline, graph, known_functions(pipeline)))

    def times_of(self, name: str) -> EventTimes:
        """The columns of event time of a source or step; none if it is not declared."""
        return self.times.get(name, EventTimes())

    def of_inputs(self, step: Step, graph: Graph) -> frozenset[str]:
        return frozenset(mark for each in graph.inputs.get(step.name, ()) for mark in self.watermarks.get(each, ()))

    def windows_of_inputs(self, step: Step, graph: Graph) -> frozenset[str]:
        """The columns of a step's inputs that are windows of event time, or sessions."""
        return NO_COLUMNS.union(*(self.times_of(each).windows for each in graph.inputs.get(step.name, ())))

    def sessions_of_inputs(self, step: Step, graph: Graph) -> frozenset[str]:
        return NO_COLUMNS.union(*(self.times_of(each).sessions for each in graph.inputs.get(step.name, ())))

    def time_before(self, step: Step, graph: Graph) -> str | None:
        """A column of event time of a stream before a step, whether the step's input has it or not."""
        before = [each for each in graph.upstream(step.name)[:-1] if each in self.names]
        return next((min(self.watermarks[each]) for each in before if self.watermarks.get(each)), None)

    def reading_of(self, step: Step, graph: Graph) -> NullQueries | None:
        """The query of a SQL step, read over the event times of its inputs."""
        query = query_of(step)
        if query is None:
            return None
        reading = NullQueries(timed_inputs(graph.inputs.get(step.name, ()), self.times, self.columns))
        reading.of_query(query)
        return reading


@dataclass(frozen=True, slots=True)
class EventTimes:
    """The columns of event time of a source or step, in lower case."""

    moments: frozenset[str] = NO_COLUMNS
    windows: frozenset[str] = NO_COLUMNS  # structs of start and end
    ends: frozenset[str] = NO_COLUMNS  # of the moments, the ends of windows, which Spark does not mark itself
    sessions: frozenset[str] = NO_COLUMNS  # of the windows, those that are sessions

    @property
    def all(self) -> frozenset[str]:
        return self.moments | self.windows

    def among(self, names: Iterable[str]) -> EventTimes:
        """The columns with these names."""
        named = {each.lower() for each in names}
        return EventTimes(self.moments & named, self.windows & named, sessions=self.sessions & named)


def event_times(pipeline: Pipeline, graph: Graph, known: Mapping[str, Columns | None]) -> dict[str, EventTimes]:
    """The columns of event time of each source and step: its own, or those of its inputs that it keeps."""
    steps = {each.name: each for each in pipeline.steps}
    found = {
        each.name: EventTimes(frozenset({each.watermark.column.lower()} if each.watermark is not None else ()))
        for each in pipeline.sources
    }
    for name in graph.order:
        if name not in steps:
            continue
        own = steps[name].watermark
        if own is not None:
            found[name] = EventTimes(frozenset({own.column.lower()}))
        else:
            found[name] = step_times(steps[name], graph.inputs.get(name, ()), found, known)
    return found


def step_times(
    step: Step, inputs: Iterable[str], times: Mapping[str, EventTimes], known: Mapping[str, Columns | None]
) -> EventTimes:
    """The columns of event time that a step passes on; a row of a join has the event time of the side that it keeps."""
    operation, columns = step.operation, lookup(known, step.name)
    if isinstance(operation, KeyedState):
        return EventTimes()  # its rows are new
    if isinstance(operation, StreamJoin):
        if operation.how is StreamJoinKind.FULL:
            return EventTimes()
        kept = times.get(operation.stream if operation.how is StreamJoinKind.RIGHT else operation.input, EventTimes())
        return kept if columns is None else kept.among(columns.names)
    query = query_of(step)
    if query is not None:
        rows = NullQueries(timed_inputs(inputs, times, known)).of_query(query)
        return selected_times(rows, has_own_sessions=has_sessions(query))
    read = [times[each] for each in inputs if each in times]
    moments, windows, sessions = (
        NO_COLUMNS.union(*each)
        for each in ([t.moments for t in read], [t.windows for t in read], [t.sessions for t in read])
    )
    inherited = EventTimes(moments, windows, sessions=sessions)
    if isinstance(operation, Aggregation):
        kept, window = inherited.among(operation.by), operation.window
        ends = frozenset({"window_end"} if window is not None and window.column.lower() in inherited.moments else ())
        return EventTimes(kept.moments | ends, kept.windows, ends, kept.sessions)
    return inherited if columns is None else inherited.among(columns.names)


def selected_times(rows: Rows, *, has_own_sessions: bool) -> EventTimes:
    timed = [each for each in rows.columns if each.time is not None and each.name]
    structs = [each for each in timed if each.kind in {Time.WINDOW, Time.SESSION}]
    return EventTimes(
        frozenset(each.name for each in timed if each not in structs),
        frozenset(each.name for each in structs),
        frozenset(each.name for each in timed if each.kind is Time.END),
        frozenset(each.name for each in structs if has_own_sessions or each.kind is Time.SESSION),
    )


def timed_inputs(
    names: Iterable[str], times: Mapping[str, EventTimes], known: Mapping[str, Columns | None]
) -> dict[str, Rows]:
    """The columns of these sources and steps by lower-case name, of which those of event time are known."""
    return {name.lower(): timed_rows(times.get(name, EventTimes()), lookup(known, name)) for name in names}


def timed_rows(times: EventTimes, columns: Columns | None) -> Rows:
    names = [] if columns is None else [each.lower() for each in columns.names]
    return with_times(Rows(tuple(map(Column, names)), is_open=columns is None), times)


def with_times(rows: Rows, times: EventTimes) -> Rows:
    """The rows, of which these columns are event time. The columns of generators without names are not known: a column
    with a watermark exists."""
    kinds = dict.fromkeys(times.moments, Time.MOMENT) | dict.fromkeys(times.windows, Time.WINDOW)
    kinds |= dict.fromkeys(times.sessions, Time.SESSION)
    columns = tuple(
        replace(each, time=each.name if each.name in kinds else None, kind=kinds.get(each.name, Time.MOMENT))
        for each in rows.columns
    )
    others = tuple(Column(name, time=name, kind=kind) for name, kind in kinds.items() if not rows.has(name))
    return replace(rows, columns=(*columns, *others))
