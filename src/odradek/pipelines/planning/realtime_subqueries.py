"""Whether Spark runs a subquery in an expression by equal columns, if the subquery reads static tables and the SELECT
around it a stream.

IN, EXISTS and every subquery that names columns of the SELECT around it are joins with the rows of the stream. Where
Spark cannot separate the conditions with such columns from the subquery, it even joins the stream with itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.pipelines.planning.join_conditions import FOREIGN, UNKNOWN, is_equality, own_columns, table_of, terms_in
from odradek.pipelines.planning.queries import JoinType, has_aggregates, join_type, own_joins

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sqlglot import exp

    from odradek.pipelines.planning.join_conditions import Term
    from odradek.pipelines.planning.time_columns import Scope


class Subquery:
    """A subquery in an expression, and the conditions in it that name columns of the SELECT around it. `scopes` has the
    tables of each SELECT, by the identity of its node."""

    def __init__(self, query: exp.Expr, scopes: Mapping[int, Scope]) -> None:
        from sqlglot import exp  # noqa: PLC0415 - parsed already

        self._query = query
        self._scopes = scopes
        self._owner = query.find_ancestor(exp.In, exp.Exists, exp.Select)
        self._around = query.parent_select
        self._columns = {id(each): self._is_outer(each) for each in query.find_all(exp.Column)}
        self._terms = [
            (select, term)
            for select in query.find_all(exp.Select)
            for term in terms_of(select)
            if any(self._columns[id(each)] for each in own_columns(term[0]))
        ]

    def is_run_by_equality(self) -> bool:
        """Whether Spark runs the subquery without a join, or by a join with an equality; assumed if the table of one of
        its columns is not known."""
        from sqlglot import exp  # noqa: PLC0415 - takes long to import

        if None in self._columns.values():
            return True
        if isinstance(self._owner, exp.In):
            return self._is_separable() and self._is_in_by_equality(self._owner)
        is_value = self._owner is self._around and self._query.find(exp.From) is None  # of an expression
        is_joined = any(self._columns.values()) and not is_value
        return not is_joined or (self._is_separable() and self._has_equality())

    def _is_in_by_equality(self, owner: exp.In) -> bool:
        """Whether IN is an equality. NOT IN is one if it compares a single column and is a condition of its own,
        because a null in either is a match for Spark."""
        values = owner.this.expressions if type(owner.this).__name__ == "Tuple" else [owner.this]
        has_column = any(map(own_columns, values))
        if self._has_equality() or not has_column:
            return self._has_equality()
        return not is_null_aware(owner) or (len(values) == 1 and not self._terms and is_own_condition(owner))

    def _has_equality(self) -> bool:
        return any(self._is_equality(term) for _, term in self._terms)

    def _is_equality(self, term: Term, *, is_plain: bool = False) -> bool:
        """Whether a term equates an expression of the SELECT around with one of the subquery, or with a plain column of
        it."""
        from sqlglot import exp  # noqa: PLC0415 - takes long to import

        if not is_equality(term):
            return False
        sides = list(term[0].iter_expressions())
        owners = [{self._columns[id(column)] for column in own_columns(each)} for each in sides]
        if sorted(map(list, owners)) != [[False], [True]]:
            return False
        return not is_plain or isinstance(sides[owners.index({False})], exp.Column)

    def _is_separable(self) -> bool:
        """Whether Spark can move all conditions with columns of the SELECT around from the subquery to the join."""
        from sqlglot import exp  # noqa: PLC0415 - takes long to import

        used = {id(column) for _, term in self._terms for column in own_columns(term[0])}
        if isinstance(self._owner, exp.Exists):
            used |= {id(column) for each in self._query.unnest().expressions for column in own_columns(each)}
        if any(is_outer and each not in used for each, is_outer in self._columns.items()):
            return False
        return all(self._can_move(select, term) for select, term in self._terms)

    def _can_move(self, select: exp.Expr, term: Term) -> bool:
        """Whether Spark can move a term of a SELECT. It moves none out of a UNION, nor, for IN and EXISTS, out of an
        aggregate without groups; out of other groups only equalities of plain columns, and terms without a column of
        the subquery."""
        from sqlglot import exp  # noqa: PLC0415 - takes long to import

        around = [select]
        while around[-1] is not self._query and around[-1].parent is not None:
            around.append(around[-1].parent)
        selects = [each for each in around if isinstance(each, exp.Select)]
        totals = [each for each in selects if has_aggregates(each) and not each.args.get("group")]
        is_condition = self._owner is not self._around
        if any(isinstance(each, exp.SetOperation) for each in around) or (totals and is_condition):
            return False
        is_grouped = totals or any(each.args.get(key) for each in selects for key in ("group", "distinct", "limit"))
        is_outer_only = all(self._columns[id(each)] for each in own_columns(term[0]))
        return not is_grouped or is_outer_only or self._is_equality(term, is_plain=True)

    def _is_outer(self, column: exp.Column) -> bool | None:
        """Whether a column is of the SELECT around the subquery; None if that is not known."""
        outer = table_of(column, self._scopes[id(self._around)])
        is_named = len(column.parts) > 1 and column.parts[0].name.lower() == outer
        select = column.parent_select
        while select is not None and select is not self._around:
            found = table_of(column, self._scopes.get(id(select), {}))
            if found == UNKNOWN and not is_named:
                return None
            if found not in {FOREIGN, UNKNOWN}:
                return False
            select = select.parent_select
        return None if outer == UNKNOWN else outer != FOREIGN


def terms_of(select: exp.Expr) -> Iterator[Term]:
    """The terms of WHERE and of the conditions of the inner joins of a SELECT."""
    inner = [each.args.get("on") for each in own_joins(select) if join_type(each) is JoinType.INNER]
    for condition in (select.args.get("where"), *inner):
        yield from () if condition is None else terms_in(condition)


def is_null_aware(owner: exp.Expr) -> bool:
    """Whether IN is negated, also by a NOT of the conditions around it."""
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    count, node = 0, owner.parent
    while isinstance(node, exp.Not | exp.Paren | exp.And | exp.Or):
        count += isinstance(node, exp.Not)
        node = node.parent
    return count % 2 == 1


def is_own_condition(owner: exp.Expr) -> bool:
    """Whether IN is a term of WHERE or of ON."""
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    clause = owner.find_ancestor(exp.Where, exp.Join, exp.Select)
    if clause is None or isinstance(clause, exp.Select):
        return False
    condition = clause.args.get("on") if isinstance(clause, exp.Join) else clause
    return condition is not None and any(term is owner for term, _ in terms_in(condition))
