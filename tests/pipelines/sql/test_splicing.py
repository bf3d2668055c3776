"""Names and calls that are replaced in the user's own text."""

from __future__ import annotations

import pytest

from odradek.pipelines.sql.blocks import Part
from odradek.pipelines.sql.query import Query, Reference
from odradek.pipelines.sql.splicing import quoted, spliced, with_calls, with_paths, with_tables
from odradek.pipelines.sql.text import Span, parse_any, tables_of
from tests.pipelines.sql.corpus import columns_of, parts, read

TABLES = {"s": "k STRING, n BIGINT, at TIMESTAMP, a STRUCT<b: INT>, day DATE", "t": "k STRING, m BIGINT"}


def test_the_outer_of_two_spans_is_replaced() -> None:
    changes: dict[Span, str] = {(12, 13): "X", (10, 11): "", (12, 15): "YY", (0, 5): "Z"}
    assert spliced("abcdef", (10, 16), changes, 10) == "bYYf"


def path(reference: Reference) -> str | None:
    return None if reference.table is None else f"r.`{reference.table}`.`{'`.`'.join(reference.parts)}`"


@pytest.mark.parametrize(
    ("select", "items"),
    [
        ("k, s.n + 1 -- one\n as m", ["r.`s`.`k`", "r.`s`.`n` + 1"]),
        ("n + 1 as m, m * 2 as o, o % 3", ["r.`s`.`n` + 1", "(r.`s`.`n` + 1) * 2", "((r.`s`.`n` + 1) * 2) % 3"]),
        ("a as b, b.b + a.b", ["r.`s`.`a`", "(r.`s`.`a`).`b` + r.`s`.`a`.`b`"]),
        ("date_add(day, 1, at), date_add(day, 1)", ["date_add(day, 1, r.`s`.`at`)", "date_add(r.`s`.`day`, 1)"]),
        ("current_date, unknown, 'k'", ["current_date", "unknown", "'k'"]),
        ("transform(array(k), k -> k || n)", ["transform(array(r.`s`.`k`), k -> k || r.`s`.`n`)"]),
        ("to_json(struct(s.*)), `k` || S . k", ["to_json(struct(r.`s`.`*`))", "r.`s`.`k` || r.`s`.`k`"]),
    ],
)
def test_names_become_paths(select: str, items: list[str]) -> None:
    query = read(f"select {select} from s", **TABLES)
    assert [with_paths(query, each.span, path) for each in query.items] == items


@pytest.mark.parametrize(
    ("select", "item"),
    [
        ("count(distinct n)", "bigint(size(array_distinct(collect_set(n))))"),
        ("count(distinct n, k)", "count(distinct n, k)"),
        ("count(DISTINCT n + 1) filter (where n > 1) + 1",
         "bigint(size(array_distinct(collect_set(n + 1) FILTER (WHERE n > 1)))) + 1"),
        ("max_by(k, at)", "max_by(k, if((at) is null, null, struct(at, k)))"),
        ("Min_By(struct(k, n), at) filter (where n > 0)",
         "Min_By(struct(k, n), if((at) is null, null, struct(at, struct(k, n)))) FILTER (WHERE n > 0)"),
        ("sum(n) + count(k)", "sum(n) + count(k)"),
    ],
)  # fmt: skip
def test_calls_become_those_that_the_rows_determine(select: str, item: str) -> None:
    query = read(f"select {select} as x from s group by k", **TABLES)
    assert with_calls(query, query.items[0].span) == item


def test_the_condition_of_having_can_be_an_item() -> None:
    query = read(
        "select k as g, count(distinct n) as m from s group by k having m > 1 and count(distinct at) > 2 and g > k",
        **TABLES,
    )
    assert query.having is not None
    assert with_calls(query, query.having) == (
        "(bigint(size(array_distinct(collect_set(n))))) > 1 "
        "and bigint(size(array_distinct(collect_set(at)))) > 2 and (k) > k"
    )


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("select p.k from p", "select p.k from `step__p` AS `p`"),
        ("select * from P x join db.p", "select * from `step__p` x join db.p"),
        ("select * from s where k in (select k from p)", "select * from s where k in (select k from `step__p` AS `p`)"),
        ("with p as (select * from p) select * from p", "with p as (select * from `step__p` AS `p`) select * from p"),
        ("select 'p' as p, p.p from s as p", "select 'p' as p, p.p from s as p"),
    ],
)
def test_tables_get_the_names_of_hidden_ones(sql: str, expected: str) -> None:
    assert with_tables(sql, {"p": "step__p"}) == expected
    assert "p" not in tables_of(parse_any(expected))


def test_spliced_queries_name_the_same_columns() -> None:
    """Every name of a recorded or drawn query is replaced by a longer one of the same meaning."""
    for part in parts():
        query = Query(part, columns_of)
        whole = (part.start, part.start + len(part.text))
        assert with_paths(query, whole, lambda _: None) == part.text or any(each.item for each in query.references())
        aliases = {each.alias for each in query.tables} | {each.alias for each in query.laterals}

        def longer(each: Reference, aliases: set[str] = aliases) -> str | None:
            if each.table not in aliases or "*" in each.parts:
                return None
            return ".".join(map(quoted, (each.table, *each.parts)))

        text = with_paths(query, whole, longer)
        again = Query(Part(text, 0, part.renamed), columns_of)
        found, known = (
            {(each.table, each.parts[:3]) for each in found.references() if each.item is None}  # sqlglot takes four
            for found in (again, query)
        )
        assert found == known
        assert {each.name for each in again.calls} == {each.name for each in query.calls}
