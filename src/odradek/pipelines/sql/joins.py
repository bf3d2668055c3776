"""Joins of two streams: their equal columns, and the bounds of their event times by each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.conventions.dataclass import dataclass
from odradek.pipelines.definition.vocabulary import parse_duration
from odradek.pipelines.sql.query import Join
from odradek.pipelines.sql.text import Span, exp

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.pipelines.sql.query import Query, TableRead

SWAPPED = {"GT": "LT", "GTE": "LTE", "LT": "GT", "LTE": "GTE", "EQ": "EQ"}


@dataclass(frozen=True, slots=True)
class Bound:
    """A bound of right minus left event time."""

    ms: int
    is_open: bool = False  # the bound itself is outside


@dataclass(frozen=True, slots=True)
class Pairs:
    """A join of two streams. Its SELECT, and its WHERE as a whole, are row by row over the pairs."""

    left: TableRead
    right: TableRead
    how: Join
    keys: tuple[tuple[str, str], ...]
    low: Bound | None
    high: Bound | None
    residual: tuple[Span, ...]  # the conditions of ON that are neither a key nor a bound
    tables: tuple[str, ...] = ()  # the static ones of subqueries


def pairs_of(query: Query, times: tuple[str | None, str | None], tables: tuple[str, ...] = ()) -> Pairs:
    """The join of the two tables of a query, given their event times. Of an inner join WHERE is a condition, too."""
    left, right = query.tables
    how = Join.INNER if right.join in {None, Join.CROSS} else right.join or Join.INNER
    reading = _Conditions(query, times)
    for name in right.using:
        reading.add_equality(name, name)
    others = [term for term in _terms(right.on) if not reading.add(term)]
    where = query.tree.args.get("where")
    for term in _terms(where.this if where is not None and how is Join.INNER else None):
        reading.add(term)
    residual = tuple(query.span(each) for each in others)
    return Pairs(left, right, how, tuple(reading.keys), reading.low, reading.high, residual, tables)


class _Conditions:
    """Adds up the keys and the bounds of conditions."""

    def __init__(self, query: Query, times: tuple[str | None, str | None]) -> None:
        self.keys: list[tuple[str, str]] = []
        self.low: Bound | None = None
        self.high: Bound | None = None
        self._times = tuple((time or "").lower() for time in times)
        self._aliases = tuple(each.alias.lower() for each in query.tables)
        self._query = query

    def add(self, term: exp.Expr) -> bool:
        """Adds a condition; returns whether it is nothing but a key or bounds."""
        if isinstance(term, exp.EQ):
            names = dict(filter(None, map(self._column, (term.this, term.expression))))
            if len(names) == 2:
                self.add_equality(names[0], names[1])
                return True
        if isinstance(term, exp.Between) and not term.args.get("symmetric"):
            is_low = self._add_comparison("GTE", term.this, term.args["low"])
            return self._add_comparison("LTE", term.this, term.args["high"]) and is_low
        operator = type(term).__name__
        return operator in SWAPPED and self._add_comparison(operator, term.this, term.expression)

    def add_equality(self, left: str, right: str) -> None:
        self.keys.append((left, right))
        if (left.lower(), right.lower()) == self._times:
            self._add_bound("EQ", 0)

    def _add_comparison(self, operator: str, one: exp.Expr, other: exp.Expr) -> bool:
        added, subtracted = self._sum(one), self._sum(other)
        if added is None or subtracted is None:
            return False
        left, right, ms = (a - b for a, b in zip(added, subtracted, strict=True))
        if (left, right) == (-1, 1):
            self._add_bound(operator, -ms)
        elif (left, right) == (1, -1):
            self._add_bound(SWAPPED[operator], ms)
        return {left, right} == {-1, 1}

    def _add_bound(self, operator: str, ms: int) -> None:
        """Adds that right minus left event time is greater than, less than, or equal to a number."""
        bound = Bound(ms, is_open=operator in {"GT", "LT"})
        if operator not in {"LT", "LTE"}:
            self.low = max(filter(None, (self.low, bound)), key=lambda each: (each.ms, each.is_open))
        if operator not in {"GT", "GTE"}:
            self.high = min(filter(None, (self.high, bound)), key=lambda each: (each.ms, not each.is_open))

    def _sum(self, node: exp.Expr) -> tuple[int, int, int] | None:
        """How often an expression adds the event time of the left and of the right side, and its milliseconds."""
        node = node.unnest()
        if isinstance(node, (exp.Add, exp.Sub)):
            sign = 1 if isinstance(node, exp.Add) else -1
            one, other = self._sum(node.this), self._sum(node.expression)
            if one is None or other is None:
                return None
            return one[0] + sign * other[0], one[1] + sign * other[1], one[2] + sign * other[2]
        if isinstance(node, exp.Interval):
            length = parse_duration(node.sql("spark").replace("'", ""))  # None for months, and for negative ones
            return None if length is None else (0, 0, length.milliseconds)
        side, name = self._column(node) or (0, "")
        is_time = name and name.lower() == self._times[side]
        return (int(side == 0), int(side == 1), 0) if is_time else None

    def _column(self, node: exp.Expr) -> tuple[int, str] | None:
        """The side and the name of a column."""
        node = node.unnest()
        found = self._query.references(self._query.span(node)) if isinstance(node, exp.Column) else ()
        alias = (found[0].table or "").lower() if found else ""
        if not found or len(found[0].parts) > 1 or alias not in self._aliases:
            return None
        return self._aliases.index(alias), found[0].parts[0]


def _terms(condition: exp.Expr | None) -> Iterator[exp.Expr]:
    """The conditions that AND combines, whatever parentheses are around them."""
    if condition is not None:
        condition = condition.unnest()
        both = (condition.this, condition.expression) if isinstance(condition, exp.And) else ()
        yield from (term for each in both for term in _terms(each)) if both else (condition,)
