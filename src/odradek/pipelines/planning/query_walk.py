"""Reads a SQL query from its tables upwards, for each question about its rows.

The walk alone knows how the parts of a query nest and which rows their names stand for: WITH, subqueries, parentheses,
unions, joins and LATERAL. A `Reading` answers one question, such as which columns may be null: it derives what is known
of the rows of each part from what is known of the parts below it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from odradek.pipelines.planning.queries import argument, has_parentheses

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sqlglot import exp

R = TypeVar("R")  # what is known of rows
S = TypeVar("S")  # what is known of the tables of FROM: of each by its name, and of their join
NO_NAMES: Mapping[str, Any] = MappingProxyType({})


class Reading(ABC, Generic[R, S]):
    """What is known of the rows of each part of a query. `joined` and `exploded` may change the tables that they are
    given."""

    @abstractmethod
    def table(self, name: str) -> R:
        """The rows of a source or step, by its lower-case name."""

    @abstractmethod
    def generated(self, node: exp.Expr) -> R:
        """The rows of VALUES or of a table function."""

    @abstractmethod
    def pivoted(self, rows: R) -> R:
        """The rows behind PIVOT or UNPIVOT."""

    @abstractmethod
    def renamed(self, node: exp.Expr, rows: R, names: list[str]) -> R:
        """The rows of a query of WITH or of a table of FROM, to whose columns its alias gives these lower-case names in
        their order."""

    @abstractmethod
    def no_tables(self) -> S:
        """The tables of a SELECT without FROM."""

    @abstractmethod
    def one_table(self, node: exp.Expr, rows: R) -> S:
        """A table of FROM, which is known by the alias or the name of its node."""

    @abstractmethod
    def joined(self, join: exp.Expr, left: S, right: S) -> S:
        """The tables of both sides of a join."""

    @abstractmethod
    def exploded(self, lateral: exp.Expr, tables: S) -> S:
        """The tables with that of LATERAL VIEW."""

    @abstractmethod
    def whole(self, tables: S) -> R:
        """The rows of all tables as those of one."""

    @abstractmethod
    def united(self, union: exp.Expr, left: R, right: R) -> R:
        """The rows of UNION, INTERSECT or EXCEPT."""

    @abstractmethod
    def selected(self, select: exp.Select, tables: S, read: Callable[[exp.Expr], R]) -> R:
        """The rows that a SELECT returns; `read` reads a subquery in one of its expressions."""


class Walk(Generic[R, S]):
    """Reads queries. `named` are the rows of the WITH clauses around a part, by lower-case name."""

    def __init__(self, reading: Reading[R, S]) -> None:
        self._reading = reading

    def rows(self, query: exp.Expr, named: Mapping[str, R] = NO_NAMES) -> R:
        """What is known of the rows of a query."""
        from sqlglot import exp  # noqa: PLC0415 - parsed already

        named = self._with_own(query, named)
        if isinstance(query, exp.Subquery):
            return self._reading.whole(self._tables(query, named))
        if isinstance(query, exp.SetOperation):
            return self._reading.united(query, self.rows(query.this, named), self.rows(query.expression, named))
        return self._selected(query, named) if isinstance(query, exp.Select) else self._reading.generated(query)

    def _with_own(self, query: exp.Expr, named: Mapping[str, R]) -> Mapping[str, R]:
        """The names around a query and those of its WITH, each of whose queries sees the ones before it."""
        for each in getattr(argument(query, "with"), "expressions", ()):
            named = {**named, each.alias.lower(): self._renamed(each, self.rows(each.this, named))}
        return named

    def _selected(self, select: exp.Select, named: Mapping[str, R]) -> R:
        clause = argument(select, "from")
        tables = self._reading.no_tables() if clause is None else self._tables(clause.this, named)
        tables = self._joined(select, tables, named)
        for each in select.args.get("laterals") or ():
            tables = self._reading.exploded(each, tables)
        return self._reading.selected(select, tables, lambda inner: self.rows(inner, named))

    def _tables(self, node: exp.Expr, named: Mapping[str, R]) -> S:
        """The tables of a part of FROM: those in parentheses keep their names, unless these have an alias."""
        if has_parentheses(node) and not node.alias and not node.args.get("pivots"):
            tables = self._tables(node.this, self._with_own(node.this, named))
        else:
            tables = self._reading.one_table(node, self._rows_of_table(node, named))
        return self._joined(node, tables, named)

    def _joined(self, node: exp.Expr, tables: S, named: Mapping[str, R]) -> S:
        for each in node.args.get("joins") or ():
            tables = self._reading.joined(each, tables, self._tables(each.this, named))
        return tables

    def _rows_of_table(self, node: exp.Expr, named: Mapping[str, R]) -> R:
        from sqlglot import exp  # noqa: PLC0415 - takes long to import

        if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
            name = node.name.lower()
            rows = named[name] if name in named else self._reading.table(name)
        elif has_parentheses(node):
            rows = self._reading.whole(self._tables(node.this, self._with_own(node.this, named)))
        elif isinstance(node, exp.Subquery) or (isinstance(node, exp.Lateral) and isinstance(node.this, exp.Subquery)):
            rows = self.rows(node.this, named)
        else:
            rows = self._reading.generated(node)
        return self._renamed(node, self._reading.pivoted(rows) if node.args.get("pivots") else rows)

    def _renamed(self, node: exp.Expr, rows: R) -> R:
        """The rows with the names that an alias gives to their columns."""
        alias = node.args.get("alias")
        names = alias.args.get("columns") if alias is not None else None
        return self._reading.renamed(node, rows, [each.name.lower() for each in names]) if names else rows
