"""Guards of outer joins of streams in SQL: the condition says of the columns that it compares that they are not null.

A row without event time matches nothing, and no watermark passes it: Spark would keep it for ever and never write it as
a row without a match, as a batch does. In a full join of streams Spark takes two nulls for equal. With the guard such
rows are written at once. The condition selects the same rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.pipelines.definition.sql_text import parse_query
from odradek.pipelines.planning.queries import JoinType, terms_of
from odradek.pipelines.planning.query_facts import query_facts
from odradek.pipelines.planning.sql_tokens import Kind, tokenize

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from sqlglot import exp

OUTER = frozenset((JoinType.LEFT, JoinType.RIGHT, JoinType.FULL))


def with_null_guards(text: str, streaming: Collection[str]) -> str:
    """The query over these streams with a guard in the condition of each outer join of two of them."""
    joins = query_facts(parse_query(text), streaming).joins
    found = [each.node.args.get("on") for each in joins if each.is_of_streams and each.type in OUTER]
    guards: dict[int, str] = {}  # by the position behind ON
    for condition in filter(None, found if can_be_guarded(text) else ()):
        names = compared_columns(condition)
        before = [each.end for each in tokenize(text) if each.is_word("on") and each.end <= start_of(condition)]
        if names and before:
            guards[before[-1]] = "".join(f" {name} IS NOT NULL AND" for name in names)
    for position in sorted(guards, reverse=True):
        text = text[:position] + guards[position] + text[position:]
    return text


def can_be_guarded(text: str) -> bool:
    return all(each.kind is not Kind.UNKNOWN for each in tokenize(text))


def start_of(condition: exp.Expr) -> int:
    """The position of the first name in a condition."""
    from sqlglot import exp  # noqa: PLC0415 - parsed already

    starts = [int(each.meta["start"]) for each in condition.find_all(exp.Identifier) if "start" in each.meta]
    return min(starts, default=0)


def compared_columns(condition: exp.Expr) -> list[str]:
    """The columns without which no row meets the condition: those that its terms compare, also after an addition."""
    found = [each for _, side in compared_sides(condition) for each in plain_columns(side)]
    return list(dict.fromkeys(each.sql(dialect="spark") for each in found))


def computed_keys(condition: exp.Expr) -> list[str]:
    """The sides of equalities that are computed from columns and may be null if these columns are not."""
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    sides = [side for term, side in compared_sides(condition) if isinstance(term, exp.EQ)]
    computed = [each for each in sides if not plain_columns(each) or any(map(is_try_cast, each.find_all(exp.Cast)))]
    return [each.sql(dialect="spark") for each in computed if each.find(exp.Column) is not None]


def is_try_cast(node: exp.Expr) -> bool:
    """Whether this is TRY_CAST; sqlglot uses one class for it and for Spark's CAST."""
    return bool(node.args.get("safe"))


def compared_sides(condition: exp.Expr) -> Iterator[tuple[exp.Expr, exp.Expr]]:
    """The comparisons that must hold, each with one of its sides."""
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    for term in terms_of(condition):
        if isinstance(term, exp.GT | exp.GTE | exp.LT | exp.LTE | exp.EQ | exp.Between):
            yield from ((term, side) for side in term.args.values() if isinstance(side, exp.Expr))


def plain_columns(side: exp.Expr) -> list[exp.Expr]:
    """The columns of a sum, of which each makes the sum null if it is null."""
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    if isinstance(side, exp.Add | exp.Sub):
        return plain_columns(side.this) + plain_columns(side.expression)
    if isinstance(side, exp.Paren | exp.Cast):
        return plain_columns(side.this)
    return [side] if isinstance(side, exp.Column) else []
