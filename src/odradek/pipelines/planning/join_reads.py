"""Which columns of a side of a join of streams its state has: those that the query reads above the side.

Spark's optimizer leaves out the other columns: those that only the joins of the side name, or conditions that Spark
applies before the join because all their columns are of the side.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.pipelines.definition.sql_written import excepted_columns, is_star
from odradek.pipelines.planning.queries import JoinType, children, join_type, own_joins, terms_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlglot import exp

    from odradek.pipelines.planning.time_columns import Scope, Sides

BELOW = frozenset(("from", "from_", "joins", "with", "with_", "where", "expressions"))
# Joins that do not apply a condition on one side only before the join: for which side; True is the left one.
LATE_CONDITIONS = {
    JoinType.LEFT: frozenset((True,)),
    JoinType.RIGHT: frozenset((False,)),
    JoinType.FULL: frozenset((True, False)),
}


def columns_read(join: exp.Expr, sides: Sides, *, is_left: bool) -> set[str]:
    """The columns of a side that are read above it, as `table.column` in lower case."""
    from sqlglot import exp  # noqa: PLC0415 - parsed already

    scope = sides.left if is_left else sides.right
    merged = [found_in([each.name.lower()], scope) for each in join.args.get("using") or ()]
    found = {each for each in merged if each is not None}
    select = join.find_ancestor(exp.Select)
    if select is None:
        return found
    for term in terms_above(join, select, scope, is_left=is_left):
        found |= named_in(term, scope)
    if is_left or join_type(join) not in {JoinType.SEMI, JoinType.ANTI}:
        found |= columns_selected(select, scope)
    return found


def terms_above(join: exp.Expr, select: exp.Expr, scope: Scope, *, is_left: bool) -> Iterator[exp.Expr]:
    """The terms of the conditions of a SELECT that are applied to the rows of a side in a join with other rows."""
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    joins = [(each, each.args.get("on")) for each in own_joins(select)]
    for owner, condition in [(select, select.args.get("where")), *joins]:
        is_late = owner is join and is_left in LATE_CONDITIONS.get(join_type(join), ())
        for term in () if condition is None else terms_of(condition):
            if is_late or not all(found_in(names_of(each), scope) for each in term.find_all(exp.Column)):
                yield term


def columns_selected(select: exp.Expr, scope: Scope) -> set[str]:
    """The columns of a side that a SELECT returns, groups by or reads in another clause behind its joins."""
    outside = names_outside(select)
    found: set[str] = set()
    for item in select.expressions:
        if is_star(item):
            read = starred(item, scope)
            found |= read if outside is None else {each for each in read if each.partition(".")[2] in outside}
        elif outside is None or str(item.alias_or_name).lower() in outside:
            found |= named_in(item, scope)
    for part in (each for key, value in select.args.items() if key not in BELOW for each in children(value)):
        found |= named_in(part, scope)
    return found


def names_outside(select: exp.Expr) -> set[str] | None:
    """The names of columns in the query around a subquery, which may leave out its others; None if it has all."""
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    root = select.root()
    around = [each for each in root.walk(prune=lambda node: node is select) if each is not select]
    is_whole = not around or bool(select.args.get("distinct")) or root.find(exp.SetOperation) is not None
    if is_whole or any(is_all_columns(each) or has_column_names(each) for each in around):
        return None
    return {part.name.lower() for each in around if isinstance(each, exp.Column) for part in each.parts}


def is_all_columns(node: exp.Expr) -> bool:
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    return isinstance(node, exp.Star) and not isinstance(node.parent, exp.Count)


def has_column_names(node: exp.Expr) -> bool:
    """Whether it is the alias of a table with names for its columns."""
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    return isinstance(node, exp.TableAlias) and bool(node.args.get("columns"))


def named_in(node: exp.Expr, scope: Scope) -> set[str]:
    """The columns of these tables that an expression names."""
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    columns = [each for each in node.find_all(exp.Column) if not is_star(each)]
    return {found for each in columns if (found := found_in(names_of(each), scope)) is not None}


def names_of(column: exp.Column) -> list[str]:
    return [part.name.lower() for part in column.parts]


def found_in(names: list[str], scope: Scope) -> str | None:
    """The column of these tables with this name; None if it is of another side. Of the columns that USING has made one,
    it is that of the first table."""
    first, *others = names
    if others and first in scope:
        return f"{first}.{others[0]}"
    tables = [table for table, rows in scope.items() if first in rows.columns]
    tables += [table for table, rows in scope.items() if rows.is_open and not others]
    return f"{tables[0]}.{first}" if tables else None


def starred(star: exp.Expr, scope: Scope) -> set[str]:
    """The columns of these tables that `*` or `table.*` stands for, each name once."""
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    only = star.parts[0].name.lower() if isinstance(star, exp.Column) else None
    left_out = {each.name.lower() for each in excepted_columns(star)}
    tables = [(table, rows) for table, rows in reversed(scope.items()) if only in {None, table}]
    found = {name: f"{table}.{name}" for table, rows in tables for name in rows.columns if name not in left_out}
    return set(found.values())
