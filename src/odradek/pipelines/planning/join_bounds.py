"""What the condition of a join of streams says about event time: when Spark removes rows from the state of the join.

Spark removes the rows of a side by their event time, the column that its watermark marks:

- If an equality of the condition has such a column, when the watermark has passed it, on both sides. The other column
  must be event time, too: otherwise rows that are not late would find no match.
- Otherwise by the lower bounds of the condition for columns of this side, of which the smallest counts. Spark does not
  ask whether the column that is bounded is event time, and takes a number that a column is compared with for a time.
"""

from __future__ import annotations

import re
from dataclasses import field
from typing import TYPE_CHECKING

from odradek.conventions.dataclass import dataclass
from odradek.pipelines.planning.queries import JoinType, terms_of
from odradek.pipelines.planning.time_columns import Time

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlglot import exp

    from odradek.pipelines.planning.query_facts import JoinFound
    from odradek.pipelines.planning.time_columns import Scope, Sides

    Signed = list[tuple["exp.Column", int]]

NUMBER = re.compile(r"\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\s*")
CAST_TYPES = frozenset(  # of casts that Spark looks through
    ("TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMPLTZ", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL")
)
IMPRECISE = ("month", "year", "quarter")  # units of intervals whose length is not known


@dataclass(slots=True)
class Bounds:
    """What is known of a join. A side is True if it is the left one."""

    has_equality: bool = False
    ends: set[bool] = field(default_factory=set)  # sides whose event time is bounded
    keys: list[tuple[str, str]] = field(default_factory=list)  # event time that equals a column that is none
    others: dict[bool, tuple[str, str]] = field(
        default_factory=dict
    )  # a column that the event time of the other bounds
    numbers: dict[bool, str] = field(default_factory=dict)  # a comparison of a column with a number

    @property
    def early(self) -> list[tuple[bool, str, str]]:
        """Sides whose rows Spark would remove too early, by the bound of a column that is not event time."""
        return [(side, *columns) for side, columns in self.others.items() if side not in self.ends]


def bounds_of(join: JoinFound, sides: Sides) -> Bounds:
    """The bounds of a join of two streams. What is not known counts as a bound, and as nothing that is refused."""
    from sqlglot import exp  # noqa: PLC0415 - parsed already

    made = Bounds(has_equality=bool(join.node.args.get("using") or join.node.args.get("method")))
    for name in (each.name for each in join.node.args.get("using") or ()):
        add_key(made, (name, time_in(sides.left, name)), (name, time_in(sides.right, name)))
    for term in condition_terms(join):
        is_equality = isinstance(term, exp.EQ | exp.NullSafeEQ)
        if not all(map(sides.may_have, term.find_all(exp.Column))):
            made.has_equality |= is_equality  # of a third table, which Spark may join first
            continue
        if is_equality:
            add_equality(made, term, sides)
        for greater, lesser in ordered_pairs(term):
            add_bound(made, greater, lesser, sides)
    return made


def condition_terms(join: JoinFound) -> Iterator[exp.Expr]:
    """The terms of ON; those of WHERE too for an inner join, of whose condition Spark makes them a part."""
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    above = join.node.find_ancestor(exp.Select) if join.type is JoinType.INNER else None
    for condition in (join.node.args.get("on"), None if above is None else above.args.get("where")):
        if condition is not None:
            yield from terms_of(condition)


def ordered_pairs(term: exp.Expr) -> list[tuple[exp.Expr, exp.Expr]]:
    """The comparisons of a term, each with the greater side first."""
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    if isinstance(term, exp.GT | exp.GTE):
        return [(term.this, term.expression)]
    if isinstance(term, exp.LT | exp.LTE):
        return [(term.expression, term.this)]
    if isinstance(term, exp.Between):
        return [(term.this, term.args["low"]), (term.args["high"], term.this)]
    if isinstance(term, exp.Not) and not isinstance(term.this.unnest(), exp.Between):
        return [(lesser, greater) for greater, lesser in ordered_pairs(term.this.unnest())]
    return []


def add_equality(made: Bounds, term: exp.Expr, sides: Sides) -> None:
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    compared = [term.this.unnest(), term.expression.unnest()]
    found = [[sides.find(column) for column in each.find_all(exp.Column)] for each in compared]
    if not all(found):
        return  # with a literal
    of_left = [{each[0] for each in columns if each is not None} for columns in found]
    is_certain = all(None not in columns for columns in found)
    if is_certain and (of_left[0] | of_left[1] != {True, False} or of_left[0] & of_left[1]):
        return  # not of one side each
    made.has_equality = True
    if is_certain and all(isinstance(each, exp.Column) for each in compared):
        times = [columns[0][1] for columns in found if columns[0] is not None]
        texts = [each.sql(dialect="spark") for each in compared]
        add_key(made, (texts[0], times[0]), (texts[1], times[1]))


def add_key(made: Bounds, one: tuple[str, Time], other: tuple[str, Time]) -> None:
    """Adds an equality of two columns, each with whether it is event time."""
    times = {one[1], other[1]}
    if times == {Time.MARKED, Time.PLAIN}:
        marked, plain = (one, other) if one[1] is Time.MARKED else (other, one)
        made.keys.append((marked[0], plain[0]))
    elif Time.PLAIN not in times:
        made.ends |= {True, False}


def time_in(scope: Scope, name: str) -> Time:
    """Whether the column of this name is event time."""
    times = [rows.columns[name.lower()] for rows in scope.values() if name.lower() in rows.columns]
    return times[0] if len(times) == 1 else Time.UNKNOWN


def add_bound(made: Bounds, greater: exp.Expr, lesser: exp.Expr, sides: Sides) -> None:
    terms = signed_columns(greater, 1), signed_columns(lesser, -1)
    if terms[0] is None or terms[1] is None:
        return
    columns = [*terms[0], *terms[1]]
    found = [sides.find(column) for column, _ in columns]
    if None in found:
        made.ends |= {True, False} if len(columns) > 1 else set()
        return
    known = [(column, sign, *each) for (column, sign), each in zip(columns, found, strict=True) if each is not None]
    for side in (True, False):
        own = [each for each in known if each[2] is side]
        others = [each for each in known if each[2] is not side]
        if len(own) != 1 or own[0][1] < 0:
            continue
        text = own[0][0].sql(dialect="spark")
        if not others and has_number(greater, lesser):
            made.numbers.setdefault(side, text)
        if len(others) == 1 and others[0][1] < 0 and others[0][3] is not Time.PLAIN:
            if own[0][3] is not Time.PLAIN:
                made.ends.add(side)
            elif others[0][3] is Time.MARKED and sides.marked(is_left=side):
                made.others.setdefault(side, (text, others[0][0].sql(dialect="spark")))


def signed_columns(node: exp.Expr, sign: int) -> Signed | None:
    """The columns of a sum with their signs; None for what Spark derives no bound from."""
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    if isinstance(node, exp.Column):
        return [(node, sign)]
    if isinstance(node, exp.Paren) or (isinstance(node, exp.Cast) and node.to.this.name in CAST_TYPES):
        return signed_columns(node.this, sign)
    if isinstance(node, exp.Neg):
        return signed_columns(node.this, -sign)
    if isinstance(node, exp.Add | exp.Sub):
        left = signed_columns(node.this, sign)
        right = signed_columns(node.expression, sign if isinstance(node, exp.Add) else -sign)
        is_of_columns = bool(left and right)  # the interval between two times
        return None if left is None or right is None or is_of_columns else left + right
    if isinstance(node, exp.Interval):
        text = node.sql(dialect="spark").lower()
        return None if any(unit in text for unit in IMPRECISE) else []
    return [] if isinstance(node, exp.Literal) else None


def has_number(*sides: exp.Expr) -> bool:
    """Whether a literal of these sides is a number, or a text that Spark takes for one; those of intervals are not."""
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    literals = [each for side in sides for each in side.find_all(exp.Literal)]
    numbers = [each for each in literals if each.is_number or NUMBER.fullmatch(each.name)]
    return any(each.find_ancestor(exp.Interval) is None for each in numbers)
