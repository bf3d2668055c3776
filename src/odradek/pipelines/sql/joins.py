"""Joins of two streams: their equal columns, and the bounds of their event times by each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from odradek.pipelines.sql.query import Join, milliseconds
from odradek.pipelines.sql.text import (
    CLOSING,
    OPENING,
    Span,
    SqlError,
    closing,
    cut,
    exp,
    parse_expression,
    tokens_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from odradek.pipelines.sql.query import Query, Reference, TableRead
    from odradek.pipelines.sql.text import Token

PREFIX = len("SELECT ")  # positions of `parse_expression` begin behind it
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
        reading.add_equality((name, name))
    residual = reading.add(right.on_span)
    if how is Join.INNER:
        reading.add(query.where)
    return Pairs(left, right, how, tuple(reading.keys), reading.low, reading.high, tuple(residual), tables)


class _Conditions:
    """Adds up the keys and the bounds of conditions."""

    def __init__(self, query: Query, times: tuple[str | None, str | None]) -> None:
        self.keys: list[tuple[str, str]] = []
        self.low: Bound | None = None
        self.high: Bound | None = None
        self._query = query
        self._times = tuple((time or "").lower() for time in times)
        self._aliases = tuple(each.alias.lower() for each in query.tables)

    def add(self, condition: Span | None) -> list[Span]:
        """Adds a condition; returns the spans of its terms that are neither a key nor a bound."""
        if condition is None:
            return []
        text = self._query.text(condition)
        spans = [(term[0].start, term[-1].end) for term in _terms(tokens_of(text))]
        return [
            (start + condition[0], end + condition[0])
            for start, end in spans
            if not self._add_term(text[start:end], start + condition[0])
        ]

    def add_equality(self, names: tuple[str, str]) -> None:
        self.keys.append(names)
        if (names[0].lower(), names[1].lower()) == self._times:
            self._add_bound("EQ", 0)

    def _add_term(self, text: str, start: int) -> bool:
        """Whether a term is nothing but a key or bounds, which are added."""
        named = {each.span[0]: each for each in self._query.references((start, start + len(text)))}
        term = parse_expression(text).unnest()
        if isinstance(term, exp.Between) and not term.args.get("symmetric"):
            compared = [("GTE", term.this, term.args["low"]), ("LTE", term.this, term.args["high"])]
        elif type(term).__name__ in SWAPPED:
            compared = [(type(term).__name__, term.this, term.expression)]
        else:
            return False
        if isinstance(term, exp.EQ):
            sides = [self._column(each.unnest(), named, start) for each in (term.this, term.expression)]
            names = dict(filter(None, sides))
            if len(names) == 2:
                self.add_equality((names[0], names[1]))
                return True
        return all([self._add_comparison(*each, named, start) for each in compared])  # noqa: C419 - adds each of them

    def _add_comparison(
        self, operator: str, one: exp.Expr, other: exp.Expr, named: dict[int, Reference], start: int
    ) -> bool:
        sums = [self._sum(each, named, start) for each in (one, other)]
        if sums[0] is None or sums[1] is None:
            return False
        left, right, ms = (a - b for a, b in zip(*sums, strict=True))
        if (left, right) == (-1, 1):
            self._add_bound(operator, -ms)
        elif (left, right) == (1, -1):
            self._add_bound(SWAPPED[operator], ms)
        return {left, right} == {-1, 1}

    def _add_bound(self, operator: str, ms: int) -> None:
        """Adds that right minus left event time is greater than, less than, or equal to a number."""
        bound = Bound(ms, is_open=operator in {"GT", "LT"})
        if operator in {"GT", "GTE", "EQ"} and (self.low is None or _rank(bound, 1) > _rank(self.low, 1)):
            self.low = bound
        if operator in {"LT", "LTE", "EQ"} and (self.high is None or _rank(bound, -1) < _rank(self.high, -1)):
            self.high = bound

    def _sum(self, node: exp.Expr, named: dict[int, Reference], start: int) -> tuple[int, int, int] | None:
        """How often an expression adds the event time of the left and of the right side, and its milliseconds."""
        node = node.unnest()
        if isinstance(node, (exp.Add, exp.Sub)):
            sign = 1 if isinstance(node, exp.Add) else -1
            one, other = (self._sum(each, named, start) for each in (node.this, node.expression))
            if one is None or other is None:
                return None
            return one[0] + sign * other[0], one[1] + sign * other[1], one[2] + sign * other[2]
        if isinstance(node, exp.Interval):
            ms = milliseconds(node.sql("spark").replace("'", ""))
            return None if ms is None else (0, 0, ms)
        found = self._column(node, named, start)
        if found is None or found[1].lower() != self._times[found[0]]:
            return None
        return (1, 0, 0) if found[0] == 0 else (0, 1, 0)

    def _column(self, node: exp.Expr, named: dict[int, Reference], start: int) -> tuple[int, str] | None:
        """The side and the name of a column."""
        if not isinstance(node, exp.Column):
            return None
        found = named.get(node.parts[0].meta["start"] - PREFIX + start)
        alias = "" if found is None else (found.table or "").lower()
        if found is None or len(found.parts) > 1 or alias not in self._aliases:
            return None
        return self._aliases.index(alias), found.parts[0]


def _rank(bound: Bound, sign: int) -> tuple[int, int]:
    return bound.ms, sign * bound.is_open


def _terms(tokens: Sequence[Token]) -> Iterator[Sequence[Token]]:
    """The conditions that AND combines, whatever parentheses are around them."""
    if tokens[0].kind == "L_PAREN" and closing(tokens, 0) == len(tokens) - 1:
        yield from _terms(tokens[1:-1])
        return
    ands: list[int] = []
    depth = betweens = 0
    for index, token in enumerate(tokens):
        is_word = index == 0 or tokens[index - 1].kind != "DOT"
        depth += token.kind in OPENING or (token.kind == "CASE" and is_word)
        depth -= token.kind in CLOSING or (token.kind == "END" and is_word)
        if depth or not is_word:
            continue
        if token.kind == "OR":
            yield tokens
            return
        betweens += token.kind == "BETWEEN"
        if token.kind == "AND":
            ands += [] if betweens else [index]
            betweens -= bool(betweens)
    if not all(parts := cut(tokens, ands)):
        raise SqlError("this condition cannot be read", tokens[0].start)
    yield from parts if not ands else (term for part in parts for term in _terms(part))
