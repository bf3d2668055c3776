"""Checks SQL: its syntax, the columns that it names, and what Spark's analyzer would refuse."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.conventions.dataclass import dataclass
from odradek.pipelines.definition.column_types import Array, Map, Primitive, Struct, types_in
from odradek.pipelines.definition.columns import expression_type, lookup, record_columns, shared_names
from odradek.pipelines.definition.model import (
    Changes,
    FilesTarget,
    LakehouseTarget,
    LatestRows,
    Sink,
    Source,
    Step,
    TableTarget,
    TopicTarget,
    View,
    place_of,
)
from odradek.pipelines.definition.nearest import suggestion
from odradek.pipelines.definition.operations import (
    Aggregation,
    Deduplication,
    Join,
    KeyedState,
    PythonFunction,
    Sql,
    StreamJoin,
)
from odradek.pipelines.definition.spark_functions import AGGREGATE, Answer, Functions, operate
from odradek.pipelines.definition.sql_checks import findings_of_expression, findings_of_query
from odradek.pipelines.definition.sql_columns import UnknownColumn, unknown_columns, unknown_in_expression
from odradek.pipelines.definition.sql_text import SqlError, aggregate_functions, parse_expression, parse_query
from odradek.pipelines.definition.table_columns import Columns
from odradek.pipelines.definition.vocabulary import Encoding, JoinKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from sqlglot import exp

    from odradek.pipelines.definition.column_types import ColumnType
    from odradek.pipelines.definition.model import Pipeline
    from odradek.pipelines.definition.places import Place, Problems
    from odradek.pipelines.definition.references import NamedExpression
    from odradek.pipelines.definition.sql_findings import Finding

HISTORY = ("valid_from", "valid_to", "is_current")
WINDOW_COLUMNS = ("window_start", "window_end")
TEXT = Primitive("STRING")  # which Spark casts to BOOLEAN: 'true'
TIMES = (Primitive("TIMESTAMP"), Primitive("TIMESTAMP_NTZ"))


def check_columns(
    pipeline: Pipeline, known: Mapping[str, Columns | None], functions: Functions | None, problems: Problems
) -> None:
    """Checks all SQL; without `functions` its syntax and columns only."""
    checker = ColumnChecker(known, functions, problems)
    for source in pipeline.sources:
        checker.check_source(source)
    for step in pipeline.steps:
        checker.check_step(step)
    for sink in pipeline.sinks:
        checker.check_sink(sink)
    for view in pipeline.views:
        checker.check_view(view)


@dataclass(frozen=True, slots=True)
class ColumnChecker:
    """Checks column names against the columns of every source and step; None where these are not known."""

    known: Mapping[str, Columns | None]
    functions: Functions | None
    problems: Problems

    def check_source(self, source: Source) -> None:
        columns = record_columns(source)
        what = f"source '{source.name}'"
        for each in source.columns:
            self._expression(each.expression, each.expression_place, f"column '{each.name}' of {what}", columns)
            if columns is not None:
                kind = expression_type(each.expression, columns, self.functions)
                columns = Columns({**columns.types, each.name: kind})
        if source.watermark is not None:
            place = self._at(source, "watermark/column")
            self._time_column(source.watermark.column, columns, f"watermark of {what}", place, TIMES[:1])

    def check_step(self, step: Step) -> None:
        operation = step.operation
        what = f"step '{step.name}'"
        if isinstance(operation, Sql):
            self._query(operation, what)
        elif not isinstance(operation, PythonFunction):
            columns = lookup(self.known, operation.input)
            if isinstance(operation, Aggregation):
                self._aggregation(step, operation, columns)
            elif isinstance(operation, Deduplication):
                self._deduplication(step, operation, columns)
            elif isinstance(operation, Join):
                self._columns(operation.on, columns, what, self._below(step, "join/on"))
                table = lookup(self.known, operation.table)
                self._columns(
                    operation.on, table, f"'{operation.table}', joined by {what},", self._below(step, "join/on")
                )
                self._joined(operation, columns, table, what, self._below(step, "join/on"))
                self._left_out(step, operation, columns, table)
            elif isinstance(operation, StreamJoin):
                self._stream_join(step, operation, columns)
            elif isinstance(operation, KeyedState):
                self._columns(operation.key, columns, what, self._below(step, "state/key"))
        own = lookup(self.known, step.name)
        for each in step.expectations:
            self._check(each.check, each.check_place, f"expectation '{each.name}' of {what}", own)
        if step.watermark is not None:
            place = self._at(step, "watermark/column")
            self._time_column(step.watermark.column, own, f"watermark of {what}", place, TIMES[:1])

    def _deduplication(self, step: Step, operation: Deduplication, columns: Columns | None) -> None:
        place_by_name = self._below(step, "deduplicate/key")
        self._columns(operation.key, columns, f"step '{step.name}'", place_by_name)
        for name in operation.key:
            kind = None if columns is None else columns.type_of(name)
            if kind is not None and is_incomparable(kind):
                self.problems.error(
                    place_by_name(name),
                    f"step '{step.name}' compares the column '{name}' of type {kind.ddl}, which Spark cannot compare",
                    "use an element of it, or array_sort(map_entries(…)), as a column of a step before",
                )

    def _left_out(self, step: Step, operation: Join, columns: Columns | None, table: Columns | None) -> None:
        """Reports columns of a joined table that the result has from the input instead."""
        if columns is None or table is None or operation.how in {JoinKind.SEMI, JoinKind.ANTI}:
            return
        names = shared_names(operation, columns.names, table.names)
        if names:
            self.problems.warning(
                self._at(step, "join/table"),
                f"step '{step.name}' leaves out the columns {', '.join(names)} of '{operation.table}', because "
                f"'{operation.input}' has columns of these names",
                f"rename them in a SQL step if you need them: select {names[0]} as {operation.table}_{names[0]}, … "
                f"from {operation.table}",
            )

    def _stream_join(self, step: Step, operation: StreamJoin, columns: Columns | None) -> None:
        what, place = f"step '{step.name}'", self._below(step, "join/on")
        other = lookup(self.known, operation.stream)
        self._columns(operation.on, columns, what, place)
        self._columns(operation.on, other, f"'{operation.stream}', joined by {what},", place)
        self._joined(operation, columns, other, what, place)
        names = shared_names(operation, () if columns is None else columns.names, () if other is None else other.names)
        if names:
            self.problems.error(
                self._at(step, "join/stream"),
                f"{what} joins '{operation.input}' with '{operation.stream}', and both have the column '{names[0]}'",
                f"rename it in a SQL step before the join: select {names[0]} as {operation.stream}_{names[0]}, … "
                f"from {operation.stream}",
            )

    def check_sink(self, sink: Sink) -> None:
        columns = lookup(self.known, sink.input)
        what = f"sink '{sink.name}'"
        target = sink.target
        if isinstance(target, TopicTarget):
            if target.key is not None:
                self._expression(target.key, place_of(sink, "key"), f"key of {what}", columns)
            if target.encoding is Encoding.JSON:
                self._columns(target.value, columns, f"value of {what}", self._below(sink, "value"))
            else:
                for text in target.value:
                    self._expression(text, place_of(sink, "value", text), f"value of {what}", columns)
            if target.deletes is not None:
                self._check(target.deletes, place_of(sink, "deletes"), f"deletes of {what}", columns, TEXT)
            for each in target.headers:
                self._expression(each.expression, each.expression_place, f"header '{each.name}' of {what}", columns)
        elif isinstance(target, TableTarget):
            self._columns(target.key, columns, f"key of {what}", self._below(sink, "key"))
            self._order(target.order_column, columns, sink, what)
            self._changes(target.changes, columns, sink, what)
        elif isinstance(target, LakehouseTarget):
            self._columns(target.key, columns, f"key of {what}", self._below(sink, "lakehouse/key"))
            self._columns(
                target.partition_by, columns, f"partition_by of {what}", self._below(sink, "lakehouse/partition_by")
            )
        elif isinstance(target, FilesTarget):
            self._columns(
                target.partition_by, columns, f"partition_by of {what}", self._below(sink, "files/partition_by")
            )

    def check_view(self, view: View) -> None:
        columns = lookup(self.known, view.input)
        what = f"view '{view.name}'"
        if isinstance(view.content, LatestRows):
            self._columns(view.content.key, columns, f"key of {what}", self._below(view, "key"))
            self._order(view.content.order_column, columns, view, what)
        elif isinstance(view.content, Changes):
            self._changes(view.content, columns, view, what)
        else:
            self._columns(view.content.by, columns, what, self._below(view, "by"))
            self._aggregates(view.content.aggregates, columns, view.content.by, what)

    def _order(
        self, name: str | None, columns: Columns | None, end: Sink | View, what: str, path: str = "order_by"
    ) -> None:
        if name is None:
            return
        key = path.rpartition("/")[2]
        self._column(name, columns, f"{key} of {what}", self._at(end, path))
        kind = None if columns is None else columns.type_of(name)
        if isinstance(kind, Struct | Array | Map):
            self.problems.error(
                self._at(end, path),
                f"{key} of {what} names the column '{name}' of type {kind.ddl}, which has no order in a database",
                "use a column with a time, a number or text",
            )

    def _changes(self, changes: Changes | None, columns: Columns | None, end: Sink | View, what: str) -> None:
        if changes is None:
            return
        self._columns(changes.key, columns, f"changes of {what}", self._below(end, "changes/key"))
        self._order(changes.sequence, columns, end, what, "changes/sequence")
        if changes.deletes is not None:
            self._check(changes.deletes, self._at(end, "changes/deletes"), f"deletes of {what}", columns, TEXT)
        taken = [] if columns is None or not changes.keeps_history else [name for name in HISTORY if name in columns]
        if taken:
            self.problems.error(
                self._at(end, "changes/history"),
                f"{what} keeps a history, which has the columns {', '.join(HISTORY)}, and its rows have {taken[0]}",
                "give the column another name in a SQL step",
            )

    def _aggregation(self, step: Step, operation: Aggregation, columns: Columns | None) -> None:
        what = f"step '{step.name}'"
        self._columns(operation.by, columns, what, self._below(step, "by"))
        if operation.window is not None:
            self._time_column(operation.window.column, columns, f"window of {what}", self._at(step, "window/column"))
        self._aggregates(operation.aggregates, columns, operation.by, what)
        self._window_names(step, operation, what)

    def _window_names(self, step: Step, operation: Aggregation, what: str) -> None:
        """A window adds columns, whose names no other column can have."""
        named = [(each, self._below(step, "by")(each)) for each in operation.by]
        named += [(each.name, each.place) for each in operation.aggregates]
        taken = [(name, place) for name, place in named if name.lower() in WINDOW_COLUMNS]
        for name, place in taken if operation.window is not None else ():
            self.problems.error(
                place,
                f"{what} has windows, which add the columns {' and '.join(WINDOW_COLUMNS)}, and another '{name}'",
                "give the column another name",
            )

    def _aggregates(
        self, aggregates: Iterable[NamedExpression], columns: Columns | None, by: Sequence[str], what: str
    ) -> None:
        from sqlglot import exp  # noqa: PLC0415 - expressions are parsed here anyway

        grouped = {each.lower() for each in by}
        for each in aggregates:
            name = f"aggregate '{each.name}' of {what}"
            if each.name.lower() in grouped:
                text = f"{name} has the name of a column that is grouped by"
                self.problems.error(each.place, text, "give it another name")
            parsed = self._expression(each.expression, each.expression_place, name, columns, by=by)
            if parsed is None or aggregate_functions(parsed):
                continue
            called = [str(call.name).lower() for call in parsed.find_all(exp.Anonymous)]
            if called and (self.functions is None or any(may_aggregate(self.functions, call) for call in called)):
                continue
            self.problems.error(
                each.expression_place,
                f"{name} has no aggregate function",
                "use avg(…), max(…), count(*), min_by(…) or another aggregate function",
            )

    def _query(self, operation: Sql, what: str) -> None:
        try:
            query = parse_query(operation.text)
        except SqlError as error:
            place = operation.place.inside(error.line, error.column)
            hint = error.hint or "write one query in Spark SQL"
            self.problems.error(place, f"the SQL of {what} is invalid: {error.message}", hint)
            return
        unknown = list(unknown_columns(query, lambda name: lookup(self.known, name)))
        for each in unknown:
            self._unknown(each, operation.place, f"the SQL of {what}")
        if self.functions is not None:
            found = findings_of_query(operation.text, lambda name: lookup(self.known, name), self.functions)
            self._findings(found, operation.place, f"the SQL of {what}")

    def _findings(self, found: Iterable[Finding], place: Place, what: str) -> None:
        for each in found:
            self.problems.error(place.inside(each.line, each.column), f"{what}: {each.message}", each.hint)

    def _check(
        self, text: str, place: Place, what: str, columns: Columns | None, also: ColumnType | None = None
    ) -> None:
        """A condition: of an expectation, or of rows that delete, which may also be of another type."""
        self._expression(text, place, what, columns)
        kind = expression_type(text, columns, self.functions)
        if kind is not None and kind != also and operate("where", kind) is Answer.REFUSED:
            self.problems.error(place, f"{what} is {kind.ddl}, not a condition", "write a comparison, such as a > 0")

    def _joined(
        self,
        join: Join | StreamJoin,
        left: Columns | None,
        right: Columns | None,
        what: str,
        place_by_name: Callable[[str], Place],
    ) -> None:
        for name in join.on if left is not None and right is not None else ():
            kinds = (left.type_of(name), right.type_of(name))  # type: ignore[union-attr]  # both sides have columns, as checked above
            if operate("=", *kinds) is Answer.REFUSED:
                types = " with ".join(each.ddl for each in kinds if each is not None)
                message = f"{what} joins '{name}' of type {types}"
                self.problems.error(place_by_name(name), message, "cast one of them in a step before")

    def _expression(
        self, text: str, place: Place, what: str, columns: Columns | None, *, by: Sequence[str] | None = None
    ) -> exp.Expr | None:
        """Checks an expression; `by` has the grouping columns if it is an aggregate."""
        try:
            parsed = parse_expression(text)
        except SqlError as error:
            hint = "write a SQL expression, such as pressure > 100"
            self.problems.error(place.inside(error.line, error.column), f"{what} is invalid: {error.message}", hint)
            return None
        for each in unknown_in_expression(parsed, columns) if columns is not None else ():
            self._unknown(each, place, what, shift=len("SELECT "))
        if self.functions is not None:
            found = findings_of_expression(text, columns, self.functions, by)
            self._findings(found, place, what)
        return parsed

    def _unknown(self, each: UnknownColumn, place: Place, what: str, *, shift: int = 0) -> None:
        column = each.column - shift if each.line == 1 else each.column
        self.problems.error(
            place.inside(each.line, max(column, 1)),
            f"{what} names the column '{each.name}', which does not exist",
            suggestion(each.name, each.known, what="known columns"),
        )

    def _columns(
        self, names: Iterable[str], columns: Columns | None, what: str, place_by_name: Callable[[str], Place]
    ) -> None:
        for name in names:
            self._column(name, columns, what, place_by_name(name))

    def _column(self, name: str, columns: Columns | None, what: str, place: Place) -> None:
        if columns is not None and name not in columns:
            self.problems.error(
                place,
                f"{what} names the column '{name}', which does not exist",
                suggestion(name, columns.names, what="known columns"),
            )

    def _time_column(
        self, name: str, columns: Columns | None, what: str, place: Place, types: Sequence[ColumnType] = TIMES
    ) -> None:
        self._column(name, columns, what, place)
        kind = None if columns is None else columns.type_of(name)
        if kind is not None and kind not in types:
            with_zone = " with a time zone" if kind in TIMES else ""
            function = f"try_to_timestamp({name})" if kind == TEXT else f"to_timestamp({name})"
            self.problems.error(
                place,
                f"{what} uses the column '{name}' of type {kind.ddl}, which is not a timestamp{with_zone}",
                f"compute a timestamp in the source: columns: {{event_time: {function}}}",
            )

    @staticmethod
    def _at(thing: Source | Step | Sink | View, path: str) -> Place:
        return place_of(thing, *path.split("/"))

    @staticmethod
    def _below(thing: Source | Step | Sink | View, path: str) -> Callable[[str], Place]:
        return lambda name: place_of(thing, *path.split("/"), name)


def is_incomparable(kind: ColumnType) -> bool:
    """Whether a type is or has a MAP or VARIANT."""
    return any(isinstance(each, Map) or each == Primitive("VARIANT") for each in types_in(kind))


def may_aggregate(functions: Functions, name: str) -> bool:
    return not functions.is_spark(name) or functions.kind(name) == AGGREGATE
