"""Which columns of rows may be null, and which of them are event time. A column without a proof may be null."""

from __future__ import annotations

from dataclasses import field, replace
from enum import Enum, auto
from typing import TYPE_CHECKING

from odradek.conventions.dataclass import dataclass
from odradek.pipelines.definition.sql_written import excepted_columns
from odradek.pipelines.planning.null_guards import compared_sides, plain_columns
from odradek.pipelines.planning.queries import is_window_time, terms_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from sqlglot import exp


class Time(Enum):
    """What a column of event time has."""

    MOMENT = auto()
    WINDOW = auto()  # a struct of start and end, which Spark marks as event time
    SESSION = auto()  # such a struct of a step before: Spark would merge sessions if it were grouped by
    END = auto()  # the end of such a window: event time in the steps behind, and not in the query that selects it


@dataclass(frozen=True, slots=True)
class Column:
    """A column; `time` is its name in the table that it is read from, if it is event time."""

    name: str  # in lower case
    may_be_null: bool = True
    time: str | None = None
    kind: Time = Time.MOMENT  # of event time

    @property
    def mark(self) -> str | None:
        """The event time that Spark knows the column as, in the query that has it."""
        return None if self.kind is Time.END else self.time


@dataclass(frozen=True, slots=True)
class NullTime:
    """A column of event time that is grouped by and may be null; with `is_partial` it is null in the groups of some
    grouping set."""

    name: str
    is_partial: bool = False


@dataclass(frozen=True, slots=True)
class Rows:
    """The columns of rows, in their order; `is_open` says that they may have other columns."""

    columns: tuple[Column, ...] = ()
    is_open: bool = False

    def column(self, name: str) -> Column:
        return merged(name, [each for each in self.columns if each.name == name])

    def has(self, name: str) -> bool:
        return any(each.name == name for each in self.columns)

    @property
    def required(self) -> set[str]:
        """The columns that are never null."""
        return {each.name for each in self.columns if not self.column(each.name).may_be_null}

    def requiring(self, name: str) -> Rows:
        """The rows of which this column is not null."""
        if not self.has(name):
            return replace(self, columns=(*self.columns, Column(name, may_be_null=False))) if self.is_open else self
        return replace(
            self,
            columns=tuple(replace(each, may_be_null=False) if each.name == name else each for each in self.columns),
        )

    def without_match(self) -> Rows:
        """The rows of the side of an outer join that may be missing."""
        return replace(self, columns=tuple(replace(each, may_be_null=True) for each in self.columns))

    def renamed(self, names: Iterable[str]) -> Rows:
        """The rows with other names of their columns; nothing is known of them if their order is not known."""
        if self.is_open:
            return Rows(is_open=True)
        return Rows(tuple(replace(each, name=name.lower()) for each, name in zip(self.columns, names, strict=False)))


def merged(name: str, columns: Collection[Column]) -> Column:
    """What is known of a column that is one of these."""
    timed = next((each for each in columns if each.time is not None), Column(name))
    may_be_null = not columns or any(each.may_be_null for each in columns)
    return Column(name, may_be_null, timed.time, timed.kind)


def united(left: Rows, right: Rows) -> Rows:
    """The rows of a UNION, whose columns have the names of the left side by position. Spark takes the event time of the
    left side for that of both; the end of a window is event time if both sides have one."""
    if left.is_open or right.is_open or len(left.columns) != len(right.columns):
        times = [each for each in left.columns if each.mark is not None]
        return Rows(tuple(replace(each, may_be_null=True) for each in times), is_open=True)
    pairs = zip(left.columns, right.columns, strict=True)
    return Rows(tuple(united_column(one, other) for one, other in pairs))


def united_column(one: Column, other: Column) -> Column:
    is_time = one.kind is not Time.END or (other.kind is Time.END and other.time is not None)
    return Column(one.name, one.may_be_null or other.may_be_null, one.time if is_time else None, one.kind)


@dataclass(slots=True)
class Scope:
    """The tables of a SELECT by alias. `owners` has the table of each column that USING shares."""

    tables: dict[str, Rows] = field(default_factory=dict)
    owners: dict[str, str] = field(default_factory=dict)

    def find(self, column: exp.Column) -> list[tuple[str, str]]:
        """The table and the name of a column. A column without a table is of one that has it, or of one of those that
        may have others."""
        names = [part.name.lower() for part in column.parts]
        if len(names) > 1:
            return [(names[0], names[1])] if len(names) == 2 and names[0] in self.tables else []
        return [(table, names[0]) for table in self.tables_of(names[0])]

    def tables_of(self, name: str) -> list[str]:
        if name in self.owners:
            return [self.owners[name]]
        having = [table for table, rows in self.tables.items() if rows.has(name)]
        return having or [table for table, rows in self.tables.items() if rows.is_open]

    def column(self, column: exp.Column) -> Column:
        return merged(column.name.lower(), [self.tables[table].column(name) for table, name in self.find(column)])

    def require(self, columns: Iterable[exp.Expr]) -> None:
        """Notes that these columns are not null."""
        from sqlglot import exp  # noqa: PLC0415 - parsed already

        found = [place for each in columns if isinstance(each, exp.Column) for place in self.find(each)]
        for table, name in found:
            self.tables[table] = self.tables[table].requiring(name)

    def lose_match(self) -> None:
        self.tables = {table: rows.without_match() for table, rows in self.tables.items()}

    def starred(self, star: exp.Expr) -> Rows:
        """The columns of `*` or `table.*`; those of `struct.*` and `table.struct.*` are not known."""
        from sqlglot import exp  # noqa: PLC0415 - takes long to import

        left_out = {each.name.lower() for each in excepted_columns(star)}
        if isinstance(star, exp.Column):
            table = star.parts[0].name.lower() if len(star.parts) == 2 else ""
            read = [self.tables.get(table, Rows(is_open=True))]
            shared = []
        else:
            read = list(self.tables.values())
            shared = [self.tables[table].column(name) for name, table in self.owners.items()]
            left_out |= set(self.owners)
        columns = [each for rows in read for each in rows.columns if each.name not in left_out]
        return Rows((*shared, *columns), any(rows.is_open for rows in read))


def non_null_columns(condition: exp.Expr) -> Iterator[exp.Expr]:
    """The columns that are not null wherever the condition is met."""
    for term in terms_of(condition):
        tested = tested_for_null(term, is_negated=True)
        if tested is not None:
            yield from plain_columns(tested)
        for _, side in compared_sides(term):
            yield from plain_columns(side)


def tested_for_null(term: exp.Expr, *, is_negated: bool) -> exp.Expr | None:
    """What a condition such as `x IS NOT NULL` (negated) or `x IS NULL` tests."""
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    if isinstance(term, exp.Paren):
        return tested_for_null(term.this, is_negated=is_negated)
    if isinstance(term, exp.Not):
        return tested_for_null(term.this, is_negated=not is_negated)
    found: list[exp.Expr] = []
    if isinstance(term, exp.Is) and isinstance(term.expression, exp.Null) and not is_negated:
        found = [term.this]
    elif isinstance(term, exp.Anonymous) and term.name.lower() == ("isnotnull" if is_negated else "isnull"):
        found = term.expressions
    return found[0] if found else None


def may_be_null(node: exp.Expr, column: Callable[[exp.Column], Column]) -> bool:
    """Whether an expression over these columns may be null."""
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    if isinstance(node, exp.Paren | exp.Alias):
        return may_be_null(node.this, column)
    if isinstance(node, exp.Coalesce):
        return all(may_be_null(each, column) for each in (node.this, *node.expressions))
    if is_window_time(node):
        return any(may_be_null(each, column) for each in node.expressions)
    return column(node).may_be_null if isinstance(node, exp.Column) else not isinstance(node, exp.Literal)
