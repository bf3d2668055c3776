"""Parses SQL with every function call as it is written: its name, its arguments and its position.

sqlglot's dialects translate functions to a common form (`nvl` to `coalesce`), which suits neither messages nor a table
of Spark's functions.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from odradek.pipelines.definition.sql_text import (
    WINDOW_NAME,
    WINDOW_STAND_IN,
    place_in,
    with_window_columns,
    writing_dialect,
)

if TYPE_CHECKING:
    from sqlglot import exp


@functools.lru_cache(maxsize=1024)
def written_query(text: str) -> exp.Expr | None:
    """The query, or None if it cannot be parsed in this way. The result is cached: do not modify it."""
    import sqlglot  # noqa: PLC0415 - takes 0.2 s, which only definitions with SQL need
    from sqlglot import exp  # noqa: PLC0415 - takes long to import
    from sqlglot.errors import SqlglotError  # noqa: PLC0415 - takes long to import

    try:
        found = sqlglot.parse(WINDOW_NAME.sub(WINDOW_STAND_IN, text), read=writing_dialect())
    except (SqlglotError, RecursionError):
        return None
    statements = [with_window_columns(each) for each in found if each is not None]
    return statements[0] if len(statements) == 1 and isinstance(statements[0], exp.Query) else None


def written_expression(text: str) -> exp.Expr | None:
    """The expression, with positions as after `SELECT `; None if it cannot be parsed in this way."""
    query = written_query("SELECT " + text)
    return query.expressions[0] if query is not None and len(query.expressions) == 1 else None


def name_of(call: exp.Expr) -> str:
    """The lower-case name of a function call."""
    name = call.this if isinstance(call.this, str) else call.this.name
    return "window" if name == WINDOW_STAND_IN else str(name).lower()


def start_of(node: exp.Expr) -> tuple[int, int]:
    """The line and column of the first name, call or star in a part of a query; sqlglot records no other positions."""
    found = [place_in(each) for each in node.walk() if "line" in each.meta]
    return min(found, default=(1, 1))


def is_star(node: exp.Expr) -> bool:
    """Whether it is `*` or `table.*`."""
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    return isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star))


def excepted_columns(star: exp.Expr) -> list[exp.Expr]:
    """The columns that EXCEPT leaves out of `*` or `table.*`."""
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    inner = star.this if isinstance(star, exp.Column) else star
    found: list[exp.Expr] = inner.args.get("except_") or inner.args.get("except") or []
    return found
