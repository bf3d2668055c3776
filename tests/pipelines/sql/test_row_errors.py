"""What may fail for a row, by the types of its columns."""

from __future__ import annotations

import pytest

from odradek.pipelines.definition.ddl import parse_ddl
from odradek.pipelines.sql.blocks import Part
from odradek.pipelines.sql.columns import Columns
from odradek.pipelines.sql.query import Query
from odradek.pipelines.sql.row_errors import expression_may_fail, may_fail

COLUMNS = "i INT, b BIGINT, d DOUBLE, t STRING, at TIMESTAMP, day DATE, l ARRAY<INT>, m MAP<STRING, INT>"


def columns() -> Columns:
    return Columns({each.name: each.type for each in parse_ddl(COLUMNS)})


@pytest.mark.parametrize(
    "expression",
    ["l[0]", "1 / i", "cast(t as int)", "t::date", "-i", "int(t)", "transform(l, e -> e % 2)", "to_date(t)", "i + 1",
     "cast(b as int)", "d / i", "d % 0", "cast(d as bigint)", "i * d + b * b", "unknown / 2", "element_at(l, 1)",
     "cast(b as decimal(10, 2))", "to_timestamp(at, t)"],
)  # fmt: skip
def test_what_may_fail_for_a_row(expression: str) -> None:
    assert expression_may_fail(expression, columns())
    assert expression_may_fail(expression, None)


@pytest.mark.parametrize(
    "expression",
    ["i", "-1", "try_cast(t as int)", "cast(i as string)", "get(l, 0)", "date '2026-01-01'", "t || t", "t = 1",
     "cast('1' as int)", "cast(i as bigint)", "cast(b as double)", "double(i)", "m['a']", "element_at(m, 'a')", "d + 1",
     "-d", "d * 2 - i", "i / 2", "b % 10", "cast(at as date)", "to_date(at)", "cast(i as decimal(12, 2))", "bigint(i)",
     "cast(if(i > 1, i, 0) as double)", "cast(coalesce(i, 0) as bigint)", "cast(case when i > 1 then i end as double)",
     "(d) / 2L", "cast(cast(null as int) as bigint)"],
)  # fmt: skip
def test_what_the_types_of_columns_exclude_does_not_fail(expression: str) -> None:
    assert not expression_may_fail(expression, columns())


def test_the_columns_of_a_view_have_the_types_of_what_it_is_made_of() -> None:
    """As in the limits of the rigs."""
    text = (
        "select cast(if(value > highest, highest, lowest) as double) as bound from s "
        "lateral view stack(2, 'a', d, 60, 150, 'b', d, -20, 75) limits as reading, value, lowest, highest"
    )
    assert not may_fail(Query(Part(text, 0, {}), lambda _table: columns()))
    assert may_fail(Query(Part(text.replace("150", "t"), 0, {}), lambda _table: columns()))
    each = Part("select cast(x as bigint) as x from s lateral view explode(l) e as x", 0, {})
    assert not may_fail(Query(each, lambda _table: columns()))
