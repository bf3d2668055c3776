"""The walk over a query: the order in which it reads the parts, and the rows that their names stand for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from sqlglot import exp

from odradek.pipelines.definition.sql_text import parse_query
from odradek.pipelines.planning.query_walk import Reading, Walk

if TYPE_CHECKING:
    from collections.abc import Callable


class Written(Reading[str, str]):
    """Writes down which rows each part of a query is made of: `[…]` is a SELECT, `name: …` a table of FROM."""

    def __init__(self, *, reads_subqueries: bool) -> None:
        self._reads_subqueries = reads_subqueries

    def table(self, name: str) -> str:
        return name

    def generated(self, node: exp.Expr) -> str:
        return type(node).__name__.lower()

    def pivoted(self, rows: str) -> str:
        return f"pivot {rows}"

    def renamed(self, _node: exp.Expr, rows: str, names: list[str]) -> str:
        return f"{rows}({', '.join(names)})"

    def no_tables(self) -> str:
        return "nothing"

    def one_table(self, node: exp.Expr, rows: str) -> str:
        name = str(node.alias_or_name).lower()
        return rows if rows == name else f"{name}: {rows}"

    def joined(self, _join: exp.Expr, left: str, right: str) -> str:
        return f"{left} * {right}"

    def exploded(self, lateral: exp.Expr, tables: str) -> str:
        return f"{tables} * {lateral.alias}"

    def whole(self, tables: str) -> str:
        return f"({tables})"

    def united(self, _union: exp.Expr, left: str, right: str) -> str:
        return f"{left} + {right}"

    def selected(self, select: exp.Select, tables: str, read: Callable[[exp.Expr], str]) -> str:
        where = select.args.get("where") if self._reads_subqueries else None
        inner = [] if where is None else [each.this for each in where.find_all(exp.Subquery)]
        return f"[{' / '.join([tables, *map(read, inner)])}]"


def written(sql: str, *, reads_subqueries: bool = False) -> str:
    return Walk(Written(reads_subqueries=reads_subqueries)).rows(parse_query(sql))


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("select 1", "[nothing]"),
        ("select * from A", "[a]"),
        ("select * from a x", "[x: a]"),
        ("select * from a join b using (id), c", "[a * b * c]"),
        ("select * from a union all select * from b", "[a] + [b]"),
        ("(select * from a) union (select * from b except select * from c)", "(: [a]) + (: [b] + [c])"),
        ("select * from (select * from a) x", "[x: [a]]"),
        ("select * from ((select * from a)) x", "[x: (: [a])]"),
        ("select * from (a join b using (id)) join c using (id)", "[a * b * c]"),
        ("select * from (a join b using (id)) x join c using (id)", "[x: (a * b) * c]"),
        ("select * from a join (b join c using (id)) using (id)", "[a * b * c]"),
        ("select * from a lateral view explode(xs) e as y", "[a * e]"),
        ("select * from a, lateral explode(xs) as l(y)", "[a * l: lateral(y)]"),
        ("select * from a, lateral (select * from b) l", "[a * l: (: [b])]"),
        ("select * from values (1) as v(id), range(3) r", "[v: values(id) * r: table]"),
        ("select * from a pivot (sum(n) for id in (1))", "[a: pivot a]"),
        ("select * from (a) pivot (sum(n) for id in (1))", "[: pivot (a)]"),
        ("select * from a as x(k, N)", "[x: a(k, n)]"),
    ],
)
def test_parts_are_read_from_the_tables_upwards(sql: str, rows: str) -> None:
    assert written(sql) == rows


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("with x as (select * from a) select * from X", "[x: [a]]"),
        ("with x(k) as (select * from a) select * from x", "[x: [a](k)]"),
        ("with a as (select * from a) select * from a", "[a: [a]]"),
        ("with x as (select * from a), y as (select * from x) select * from y", "[y: [x: [a]]]"),
        ("with x as (select * from y), y as (select * from a) select * from x", "[x: [y]]"),
        ("with x as (select * from a), x as (select * from x) select * from x", "[x: [x: [a]]]"),
        ("with x as (with y as (select * from a) select * from y) select * from x, y", "[x: [y: [a]] * y]"),
        ("with x as (select * from a) select * from (with x as (select * from b) select * from x) q, x",
         "[q: [x: [b]] * x: [a]]"),
        ("with x as (select * from a) select * from x union all select * from x", "[x: [a]] + [x: [a]]"),
        ("with x as (select * from a) (select * from x) limit 1", "(: [x: [a]])"),
        ("select * from ((with x as (select * from a) (select * from x) limit 1)) q", "[q: (: [x: [a]])]"),
    ],
)  # fmt: skip
def test_names_of_with_stand_for_rows_inside_its_query_only(sql: str, rows: str) -> None:
    assert written(sql) == rows


def test_subqueries_of_expressions_see_the_names_around_them() -> None:
    sql = "with x as (select * from a) select * from b where id in (select id from x) and n = (select max(n) from c)"
    assert written(sql) == "[b]"
    assert written(sql, reads_subqueries=True) == "[b / [x: [a]] / [c]]"
