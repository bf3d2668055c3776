"""Column names are found by their positions, and everything else of an expression is kept as it was written."""

from __future__ import annotations

import pytest

from odradek.pipelines.planning.sql_tokens import Kind, tokenize
from odradek.pipelines.spark.one_pass.expressions import parse_expression
from odradek.pipelines.spark.one_pass.row_columns import NotLiftable
from odradek.pipelines.spark.one_pass.select_statement import Item, Star, parse_select


def resolved(parts: tuple[str, ...]) -> tuple[str, ...]:
    return ("x", *parts)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("id", "`x`.`id`"),
        ("Meter.unit + 1", "`x`.`Meter`.`unit` + 1"),
        ("`a name` || 'a'", "`x`.`a name` || 'a'"),
        ("date_format(at, \"'day' d\")", "date_format(`x`.`at`, \"'day' d\")"),
        ("concat('it''s', \"a\"\"b\", r'\\d', id)", "concat('it''s', \"a\"\"b\", r'\\d', `x`.`id`)"),
        ("a -- why\n + /* not */ b", "`x`.`a` + `x`.`b`"),
        ("case when a > 1 then 'then' else b end", "case when `x`.`a` > 1 then 'then' else `x`.`b` end"),
        ("filter(list, a -> a > b)", "filter(`x`.`list`, a -> a > `x`.`b`)"),
        ("zip_with(l, m, (a, B) -> a + b + c)", "zip_with(`x`.`l`, `x`.`m`, (a, B) -> a + b + `x`.`c`)"),
        ("transform(l, a -> a.a)[0].a", "transform(`x`.`l`, a -> a.a)[0].a"),
        ("a::decimal(10, 2)", "`x`.`a`::decimal(10, 2)"),
        ("cast(a as struct<a: int, b: array<array<int>>>)", "cast(`x`.`a` as struct<a: int, b: array<array<int>>>)"),
        ("at + interval '1' day - INTERVAL 2 hours", "`x`.`at` + interval '1' day - INTERVAL 2 hours"),
        ("interval + date", "`x`.`interval` + `x`.`date`"),
        ("date '2026-01-01' < date", "date '2026-01-01' < `x`.`date`"),
        ("extract(day from at)", "extract(day from `x`.`at`)"),
        (
            "a not between b and 3 or a not in (b, 2)",
            "`x`.`a` not between `x`.`b` and 3 or `x`.`a` not in (`x`.`b`, 2)",
        ),
        ("a like 'x!_%' escape '!'", "`x`.`a` like 'x!_%' escape '!'"),
        ("a is distinct from b", "`x`.`a` is distinct from `x`.`b`"),
        ("m['a'].b", "`x`.`m`['a'].b"),
        ("struct(a, b as c, 1)", "struct(`x`.`a` as `a`, `x`.`b` as c, 1)"),
    ],
)
def test_only_column_names_are_replaced(text: str, expected: str) -> None:
    assert parse_expression(text).sql(resolved) == expected


@pytest.mark.parametrize(
    "text",
    [
        "rand()",
        "uuid()",
        "explode(a)",
        "sum(a)",
        "sum(a) over ()",
        "raise_error('x')",
        "to_json(struct(*))",
        "count(*)",
        "arrays_zip(a, b)",
        "(a, b) in ((1, 2))",
        "(select 1)",
        "a in (select b from c)",
        "exists (select 1)",
        "dateadd(day, 1, at)",
        "timestamp 'now'",
        "a collate utf8_lcase",
        "trim(both 'x' from a)",
        "a:b",
        "f(a => 1)",
        "schema.abs(a)",
        "`abs`(a)",
        "größe + 1",
        "a /* /* nested */ */",
        "a 'b'",
        "a b",
        "1a",
        "'unterminated",
        "",
    ],
)
def test_what_is_not_known_is_refused(text: str) -> None:
    with pytest.raises(NotLiftable):
        parse_expression(text)


def test_a_path_that_a_variable_hides_is_refused() -> None:
    with pytest.raises(NotLiftable):
        parse_expression("filter(list, X -> x > b)").sql(resolved)


def test_parts_of_a_select_are_found() -> None:
    found = parse_select("""
        select *, r.*, a b, lower(c) as `select`, -- select
               d from readings as r lateral view explode(l) v as e where a > 1;""")
    assert [each.of if isinstance(each, Star) else each.name for each in found.items] == [None, "r", "b", "select", "d"]
    assert (found.table, found.alias) == ("readings", "r")
    assert found.lateral is not None
    assert (found.lateral.generator, found.lateral.alias, found.lateral.names) == ("explode", "v", ("e",))
    assert found.where is not None
    assert found.where.sql(resolved) == "`x`.`a` > 1"
    assert isinstance(found.items[2], Item)


@pytest.mark.parametrize(
    "text",
    [
        "select a from r limit 1",
        "select a from r order by a",
        "select a from r join s",
        "select a from r, s",
        "select a from d.r",
        "select a from r group by a",
        "select distinct a from r",
        "select a from r where a > 1 group by a",
        "select a from r union all select a from r",
        "select a + 1 from r",
        "select * except (a) from r",
        "select a from r lateral view outer explode(l) as e",
        "select a from r lateral view explode(l) as e lateral view explode(l) as f",
        "select a from r tablesample (1 rows)",
        "with s as (select 1) select a from s",
        "select /*+ broadcast(r) */ a from r",
        "from r select a",
        "select a",
    ],
)
def test_other_queries_are_refused(text: str) -> None:
    with pytest.raises(NotLiftable):
        parse_select(text)


def test_text_after_an_unknown_character_is_one_token() -> None:
    tokens = tokenize("a § b")
    assert [(each.kind, each.text) for each in tokens] == [(Kind.WORD, "a"), (Kind.UNKNOWN, "§ b")]
