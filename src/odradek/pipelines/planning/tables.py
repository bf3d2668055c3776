"""Makes the plan: one pass over the declarations, in which SQL is taken apart, and each table gets columns and path."""

from __future__ import annotations

from dataclasses import replace
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING

from odradek.pipelines.definition.model import (
    Changes,
    LakehouseTarget,
    LatestRows,
    RunningAggregate,
    Sink,
    Source,
    Step,
    TableTarget,
    View,
    place_of,
)
from odradek.pipelines.definition.nearest import suggestion
from odradek.pipelines.definition.operations import Aggregation, PythonFunction, Sql, StreamJoin
from odradek.pipelines.definition.vocabulary import Otherwise, SinkMode
from odradek.pipelines.planning.columns import columns_of
from odradek.pipelines.planning.paths import path_of
from odradek.pipelines.planning.plan import (
    CANNOT_COMPUTE,
    PASSES,
    Check,
    End,
    EndMode,
    GroupSql,
    PairSql,
    Plan,
    RowSql,
    StaticSql,
    Table,
    UnionSql,
    Unplanned,
)
from odradek.pipelines.sql.blocks import Part, Unreadable, blocks_of
from odradek.pipelines.sql.joins import Pairs
from odradek.pipelines.sql.query import Query
from odradek.pipelines.sql.row_errors import may_fail
from odradek.pipelines.sql.shapes import Groups, Refused, Rows, shape_of
from odradek.pipelines.sql.splicing import quoted
from odradek.pipelines.sql.text import SqlError, named_tables, parse_any, position, table_name, tables_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from odradek.pipelines.definition.model import Pipeline
    from odradek.pipelines.definition.operations import Operation
    from odradek.pipelines.definition.places import Place, Problems
    from odradek.pipelines.planning.plan import MadeBy
    from odradek.pipelines.sql.blocks import Block
    from odradek.pipelines.sql.columns import Columns

NAMES, SQL = "OD02", "OD03"  # codes of problems with names, and with SQL that cannot be read
NO_EVENT_TIME = "no event time"


def make_plan(pipeline: Pipeline, problems: Problems, broken: frozenset[str] = frozenset()) -> Plan:
    """The plan, to which no rule has been applied. Names that are not declared, cycles and SQL that cannot be read are
    reported; what depends on them, or on declarations that are broken, is left out."""
    maker = _Maker(problems)
    for source in pipeline.sources:
        maker.add(source.name, (), source, source)
    for step in _ordered(pipeline, problems, broken):
        before = maker.tables.get(step.name.lower())
        is_second = before is not None and not before.is_hidden  # of one name, which is reported
        if is_second or any(name.lower() not in maker.tables for name, _ in inputs_of(step)):
            continue  # an input could not be read
        try:
            maker.add_step(step)
        except SqlError as error:
            place = Table(step.name, (), step.operation, step).place_in_sql(error.offset)
            problems.error(place, f"the SQL of step '{step.name}' cannot be read: {error.message}", error.hint, SQL)
    ends = [*_sink_ends(pipeline, maker), *_view_ends(pipeline, maker)]
    return Plan(pipeline, maker.tables, tuple(ends))


def inputs_of(step: Step) -> list[tuple[str, Place]]:
    """The tables that a step names, and where; empty if its SQL cannot be read."""
    operation = step.operation
    match operation:
        case Sql():
            try:
                tables = named_tables(parse_any(operation.text))
            except SqlError:
                return []
            starts = {table_name(each): each.parts[0].meta["start"] for each in reversed(tables)}
            places = {name: operation.place.inside(*position(operation.text, at)) for name, at in starts.items()}
            return list(reversed(places.items()))
        case PythonFunction():
            return [(name, place_of(step, "from", name)) for name in operation.inputs]
        case StreamJoin():
            others = [(operation.stream, place_of(step, "join", "stream"))]
        case _:
            others = []
    return [(operation.input, place_of(step, "from")), *others]


def _ordered(pipeline: Pipeline, problems: Problems, broken: frozenset[str]) -> Iterator[Step]:
    """The steps, each behind those that it reads."""
    names = [*(each.name for each in pipeline.sources), *(each.name for each in pipeline.steps), *broken]
    declared = {name.lower(): name for name in names}
    steps, graph = {}, {}
    for step in pipeline.steps:
        inputs = inputs_of(step)
        for name, place in inputs:
            if name.lower() not in declared:
                _report_unknown(f"step '{step.name}'", name, place, declared.values(), problems)
        steps[step.name.lower()], graph[step.name.lower()] = step, {name.lower() for name, _ in inputs}
    ends: list[Sink | View] = [*pipeline.sinks, *pipeline.views]
    for end in ends:
        if end.input.lower() not in declared:
            reader = f"{'sink' if isinstance(end, Sink) else 'view'} '{end.name}'"
            _report_unknown(reader, end.input, place_of(end, "from"), declared.values(), problems)
    try:
        order = [*TopologicalSorter(graph).static_order()]
    except CycleError as error:
        for name in dict.fromkeys(error.args[1]):
            message = f"step '{steps[name].name}' reads itself, directly or through other steps"
            problems.error(steps[name].place, message, "change the input of one of them", NAMES)
        return
    yield from (steps[name] for name in order if name in steps)


def _report_unknown(reader: str, name: str, place: Place, declared: Iterable[str], problems: Problems) -> None:
    hint = suggestion(name, declared, what="sources and steps") or "declare a source first"
    problems.error(place, f"{reader} reads '{name}', which is neither a source nor a step", hint, NAMES)


class _Maker:
    """Adds tables, each behind its inputs."""

    def __init__(self, problems: Problems) -> None:
        self.tables: dict[str, Table] = {}
        self._problems = problems

    def columns(self, name: str) -> Columns | None:
        found = self.tables.get(name.lower())
        return None if found is None else found.columns

    def add(self, name: str, inputs: tuple[str, ...], made_by: MadeBy, owner: Source | Step | View) -> None:
        """Adds a table. The watermark and the expectations of a declaration are those of the table with its name."""
        taken = self.tables.get(name.lower())
        if taken is not None and (taken.is_hidden or name != owner.name):
            hidden, other = (taken.owner, owner) if taken.is_hidden else (owner, taken.owner)
            message = f"the name '{name}' is that of a part of '{hidden.name}'"
            self._problems.error(other.place, message, "choose another name", NAMES)
        read = [self.tables[each.lower()] for each in inputs]
        columns = columns_of(made_by, [each.columns for each in read], self.columns)
        table = Table(name, tuple(each.name for each in read), made_by, owner, columns)
        watermark = None if isinstance(owner, View) or table.is_hidden else owner.watermark
        path = path_of(table, read, watermark)
        checks: list[Check] = []
        if isinstance(made_by, RowSql) and made_by.shape.is_plain and may_fail(made_by.query):
            checks.append(Check(CANNOT_COMPUTE, "true", Otherwise.QUARANTINE, CANNOT_COMPUTE, is_implicit=True))
        if watermark is not None and path.is_stream:
            condition = f"{quoted(watermark.column)} is not null"
            checks.append(Check(NO_EVENT_TIME, condition, Otherwise.QUARANTINE, NO_EVENT_TIME, is_implicit=True))
        if isinstance(owner, Step) and not table.is_hidden:
            checks += [
                Check(each.name, each.check, each.otherwise, f"expectation '{each.name}' not met: {each.check}")
                for each in owner.expectations
            ]
        self.tables[name.lower()] = Table(name, table.inputs, made_by, owner, columns, path, tuple(checks))

    def add_step(self, step: Step) -> None:
        operation: Operation = step.operation
        if not isinstance(operation, Sql):
            self.add(step.name, tuple(name for name, _ in inputs_of(step)), operation, step)
            return
        names = tuple(name for name, _ in inputs_of(step))
        try:
            blocks = blocks_of(step.name, operation.text, lambda name: self.tables[name.lower()].path.is_stream)
        except Unreadable as error:
            why = Refused(error.message, (error.offset, error.offset), error.hint)
            self.add(step.name, names, Unplanned(why), step)
            return
        for block in blocks:
            self._add_block(step, block)

    def _add_block(self, step: Step, block: Block) -> None:
        if len(block.parts) == 1:
            self._add_select(step, block.name, block.parts[0], is_static=block.is_static)
            return
        parts = tuple(f"{block.name}__part{number}" for number in range(1, len(block.parts) + 1))
        for name, part in zip(parts, block.parts, strict=True):
            self._add_select(step, name, part, is_static=False)
        self.add(block.name, parts, UnionSql(parts), step)

    def _add_select(self, step: Step, name: str, part: Part, *, is_static: bool) -> None:
        """Adds the table of one SELECT, and hidden ones before it: of groups with HAVING, and of a join of streams."""
        read = tables_of(parse_any(part.text))
        inputs = tuple(dict.fromkeys(part.renamed.get(each.lower(), each) for each in read))
        tables = [self.tables[each.lower()] for each in inputs]
        spelled = {each.lower(): self.tables[each.lower()].name for each in inputs}
        part = replace(part, renamed={**spelled, **part.renamed})
        if is_static or not any(each.path.is_stream for each in tables):
            self.add(name, inputs, StaticSql(part), step)
            return
        query = Query(part, self.columns)
        times = {each.name.lower(): each.path.event_time for each in tables if each.path.is_stream}
        match shape_of(query, times):
            case Rows() as shape:
                self.add(name, inputs, RowSql(query, shape), step)
            case Groups(having=None) as shape:
                self.add(name, inputs, GroupSql(query, shape), step)
            case Groups() as shape:
                groups = f"{name}__groups"
                self.add(groups, inputs, GroupSql(query, shape), step)
                text = f"SELECT * EXCEPT ({quoted(PASSES)}) FROM {quoted(groups)} WHERE {quoted(PASSES)}"
                passed = Query(Part(text, 0, {}), self.columns)
                self.add(name, (groups,), RowSql(passed, Rows((groups,), (), (), is_plain=True)), step)
            case Pairs() as shape:
                pairs = f"{name}__pairs"
                sides = (shape.left.table, shape.right.table)
                self.add(pairs, sides, PairSql(query, shape), step)
                others = tuple(each for each in inputs if each.lower() not in {side.lower() for side in sides})
                rows = Rows((pairs,), others, (), is_plain=False)
                self.add(name, (pairs, *others), RowSql(query, rows, shape), step)
            case Refused() as refused:
                self.add(name, inputs, Unplanned(refused), step)


def _sink_ends(pipeline: Pipeline, maker: _Maker) -> Iterator[End]:
    for sink in pipeline.sinks:
        target = sink.target
        key = target.key if isinstance(target, TableTarget | LakehouseTarget) else ()
        order_by = target.order_by if isinstance(target, TableTarget) else ()
        mode = EndMode.KEYED if key else EndMode.UPDATE if sink.mode is SinkMode.UPDATE else EndMode.APPEND
        if sink.changes is not None:
            mode, key, order_by = EndMode.CHANGES, sink.changes.key, (sink.changes.sequence,)
        if sink.input.lower() in maker.tables:
            yield End(sink.name, sink.input, target, mode, key, order_by, False, sink.place, sink.places)


def _view_ends(pipeline: Pipeline, maker: _Maker) -> Iterator[End]:
    """A view of aggregates is a hidden table of groups, and a keyed end of it."""
    for view in pipeline.views:
        if view.input.lower() not in maker.tables:
            continue
        name, mode, content = view.input, EndMode.KEYED, view.content
        match content:
            case RunningAggregate():
                name = f"{view.name}__view"
                maker.add(name, (view.input,), Aggregation(view.input, content.aggregates, content.by), view)
                target = TableTarget(view.name, content.by, view.url)
            case LatestRows():
                target = TableTarget(view.name, content.key, view.url, content.order_by)
            case Changes():
                mode = EndMode.CHANGES
                target = TableTarget(view.name, content.key, view.url, (content.sequence,), content)
        yield End(view.name, name, target, mode, target.key, target.order_by, True, view.place, view.places)
