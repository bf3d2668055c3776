"""The expressions that only some groups of a SELECT have: those inside ROLLUP, CUBE and GROUPING SETS."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.pipelines.planning.group_columns import group_part, resolved

if TYPE_CHECKING:
    from collections.abc import Collection

    from sqlglot import exp


def partial_expressions(select: exp.Expr, tables: Collection[str]) -> list[exp.Expr]:
    """The expressions that are null in the groups of some grouping set of a SELECT over these tables, with ordinals and
    aliases replaced by what they stand for."""
    group = select.args.get("group")
    if group is None:
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

    # In `GROUP BY a, b WITH ROLLUP` and `GROUP BY a, b GROUPING SETS (…)` the end of the clause makes all the sets.
    ends = [each for key in ("rollup", "cube", "grouping_sets") for each in group.args.get(key) or ()]
    whole = set[str]().union(*map(kept, ends or group.expressions))
    found = [each for part in (*group.expressions, *ends) for leaf in leaves(part) for each in resolved(leaf, select)]
    return [each for each in found if group_part(each, omitted) not in whole]


def leaves(node: exp.Expr) -> list[exp.Expr]:
    """The expressions of a part of GROUP BY."""
    from sqlglot import exp  # noqa: PLC0415

    if isinstance(node, exp.Paren):
        return leaves(node.this)
    if isinstance(node, exp.Rollup | exp.Cube | exp.GroupingSets | exp.Tuple):
        return [leaf for each in node.expressions for leaf in leaves(each)]
    return [node]
