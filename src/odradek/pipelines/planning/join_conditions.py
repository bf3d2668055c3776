"""The conditions of a join as Spark's optimizer sees them: terms that all hold, and the tables of their columns."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sqlglot import exp

    from odradek.pipelines.planning.time_columns import Scope

    Term = tuple["exp.Expr", bool]  # and whether it is negated
    Named = tuple[str, str]  # a column: its table, and its name

FOREIGN = ""  # the table of a column that none of the known tables has
UNKNOWN = "?"  # the table of a column that a table whose columns are not known may have
EQUALITIES = frozenset(
    (("EQ", False), ("NEQ", True), ("NullSafeEQ", False), ("NullSafeNEQ", True), ("EqualNull", False))
)


def terms_in(condition: exp.Expr, *, is_negated: bool = False) -> Iterator[Term]:
    """The terms that all hold wherever a condition does, or wherever it does not. Those of OR are itself and the terms
    that both of its sides have."""
    from sqlglot import exp  # noqa: PLC0415 - parsed already

    if isinstance(condition, exp.Paren | exp.Where):
        yield from terms_in(condition.this, is_negated=is_negated)
    elif isinstance(condition, exp.Not):
        yield from terms_in(condition.this, is_negated=not is_negated)
    elif isinstance(condition, exp.And | exp.Or):
        left, right = (list(terms_in(each, is_negated=is_negated)) for each in (condition.this, condition.expression))
        if isinstance(condition, exp.Or) is is_negated:
            yield from (*left, *right)
        else:
            yield from (*(each for each in left if each in right), (condition, is_negated))
    else:
        yield condition, is_negated


def is_equality(term: Term) -> bool:
    return (type(term[0]).__name__, term[1]) in EQUALITIES


def own_columns(node: exp.Expr) -> list[exp.Column]:
    """The columns that an expression names, without those in its subqueries."""
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    parts = node.walk(prune=lambda each: isinstance(each, exp.Query))
    return [each for each in parts if isinstance(each, exp.Column)]


@dataclass(frozen=True, slots=True)
class Condition:
    """A term of a condition. Of an equality it has the tables of the columns of each side, and of one of two columns as
    such also these. `compared` are the tables of columns for whose null the term does not hold."""

    one: frozenset[str] = frozenset()
    other: frozenset[str] = frozenset()
    compared: frozenset[str] = frozenset()
    columns: frozenset[Named] = frozenset()

    def equates(self, left: frozenset[str], right: frozenset[str]) -> bool:
        """Whether the term is an equality of columns of one side of a join with columns of the other. That is assumed
        of an equality of columns whose tables are not known."""
        if not self.one or not self.other:
            return False
        is_of_each = (self.one <= left and self.other <= right) or (self.one <= right and self.other <= left)
        return is_of_each or UNKNOWN in self.one | self.other


def equality(one: Named, other: Named) -> Condition:
    """The equality of two columns."""
    tables = frozenset((one[0], other[0]))
    return Condition(frozenset((one[0],)), frozenset((other[0],)), tables, frozenset((one, other)))


def implied(conditions: Iterable[Condition]) -> list[Condition]:
    """The equalities that others imply: of columns that are equal to the same column."""
    groups: list[frozenset[Named]] = []
    for each in filter(None, (term.columns for term in conditions)):
        joined = each.union(*(group for group in groups if group & each))
        groups = [*(group for group in groups if not group & each), joined]
    return [equality(*pair) for group in groups for pair in combinations(sorted(group), 2)]


def conditions_in(condition: exp.Expr | None, scope: Scope) -> list[Condition]:
    return [] if condition is None else [condition_of(term, scope) for term in terms_in(condition)]


def condition_of(term: Term, scope: Scope) -> Condition:
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    node, is_negated = term
    equal = exp.NEQ if is_negated else exp.EQ
    sides = list(node.iter_expressions())
    plain = [named(each, scope) for each in sides if isinstance(each, exp.Column)]
    is_comparison = isinstance(node, (equal, exp.GT, exp.GTE, exp.LT, exp.LTE))
    compared = frozenset(table for table, _ in plain) if is_comparison else frozenset()
    if not is_equality(term):
        return Condition(compared=compared)
    if isinstance(node, equal) and len(plain) == 2:
        return equality(*plain)
    one, other = (tables_of(each, scope) for each in sides)
    return Condition(one, other, compared)


def tables_of(node: exp.Expr, scope: Scope) -> frozenset[str]:
    return frozenset(table_of(each, scope) for each in own_columns(node))


def named(column: exp.Column, scope: Scope) -> Named:
    names = [part.name.lower() for part in column.parts]
    table = table_of(column, scope)
    return table, ".".join(names[1:] if len(names) > 1 and names[0] == table else names)


def table_of(column: exp.Column, scope: Scope) -> str:
    """The name of the table of a column, in lower case."""
    names = [part.name.lower() for part in column.parts]
    if len(names) > 1 and names[0] in scope:
        return names[0]
    found = [name for name, rows in scope.items() if names[0] in rows.columns]
    is_open = any(rows.is_open for rows in scope.values())
    return found[0] if found else UNKNOWN if is_open else FOREIGN
