"""The expressions that only some groups of a SELECT have: those inside ROLLUP, CUBE and GROUPING SETS."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.pipelines.planning.group_columns import group_expressions, group_part, resolved

if TYPE_CHECKING:
    from collections.abc import Collection

    from sqlglot import exp


def partial_expressions(select: exp.Expr, tables: Collection[str]) -> list[exp.Expr]:
    """The expressions that are null in the groups of some grouping set of a SELECT over these tables, with ordinals and
    aliases replaced by what they stand for."""
    group = select.args.get("group")
    if group is None or group.args.get("all"):
        return []
    omitted = tables if len(tables) == 1 else ()  # a column of one table is the same with and without the table's name

    def texts(node: exp.Expr) -> set[str]:
        return {group_part(each, omitted) for each in resolved(node, select)}

    def kept(node: exp.Expr) -> set[str]:
        """The expressions that each grouping set of this part of GROUP BY has."""
        from sqlglot import exp  # noqa: PLC0415 - parsed already

        if isinstance(node, exp.Rollup | exp.Cube):
            return set()
        if isinstance(node, exp.GroupingSets):
            return set.intersection(*map(kept, node.expressions)) if node.expressions else set()
        return set().union(*map(texts, leaves(node)))

    whole = set[str]().union(*map(kept, ends_of(group) or group.expressions))
    return [each for each in grouped_expressions(select) if group_part(each, omitted) not in whole]


def grouped_expressions(select: exp.Expr) -> list[exp.Expr]:
    """The expressions of GROUP BY, also those inside ROLLUP, CUBE and GROUPING SETS, with ordinals, aliases and ALL
    replaced by what they stand for."""
    group = select.args.get("group")
    if group is None or group.args.get("all"):
        return group_expressions(select)
    parts = (*group.expressions, *ends_of(group))
    return [each for part in parts for leaf in leaves(part) for each in resolved(leaf, select)]


def ends_of(group: exp.Expr) -> list[exp.Expr]:
    """The end of GROUP BY that makes all the sets: `GROUP BY a, b WITH ROLLUP`, `GROUP BY a, b GROUPING SETS (…)`."""
    return [each for key in ("rollup", "cube", "grouping_sets") for each in group.args.get(key) or ()]


def leaves(node: exp.Expr) -> list[exp.Expr]:
    """The expressions of a part of GROUP BY."""
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    if isinstance(node, exp.Paren):
        return leaves(node.this)
    if isinstance(node, exp.Rollup | exp.Cube | exp.GroupingSets | exp.Tuple):
        return [leaf for each in node.expressions for leaf in leaves(each)]
    return [node]
