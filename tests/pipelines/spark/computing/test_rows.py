"""Rows of a record, one at most or several, and the columns that are added for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from odradek.pipelines.spark.computing.encoding import Encoded, together
from odradek.pipelines.spark.computing.rows import Frame, NotCompilable, Rows, struct_of
from odradek.pipelines.spark.frames import literal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ANSI = "spark.sql.ansi.enabled"


def test_expressions_of_a_row_that_may_be_missing() -> None:
    always, maybe, several = Rows({"a": ("a",)}), Rows({"a": ("a",)}, "`has`"), Rows.several("all", ["a"])
    assert [each.mapped("x") for each in (always, maybe)] == ["x", "if(`has`, x, null)"]
    assert several.mapped("x") == "transform(`all`, __row -> x)"
    assert [each.filtered("c") for each in (always, maybe)] == ["c", "if(`has`, c, false)"]
    assert [each.count() for each in (always, maybe)] == ["count(if(true, 1, null))", "count(if(`has`, 1, null))"]
    assert maybe.narrowed("kept") == Rows({"a": ("a",)}, "`kept`")
    assert several.narrowed("kept").filtered("c") == "filter(`kept`, __row -> c)"


def test_names_are_found_whatever_their_case() -> None:
    rows = Rows({"Id": ("x", "y"), "a": ("a",), "A": ("b",)})
    assert rows.path("iD") == ("x", "y")
    assert rows.struct(["ID"]) == "named_struct('ID', `x`.`y`)"
    for name in ("a", "b"):
        with pytest.raises(NotCompilable, match=f"no column {name}, or more than one"):
            rows.path(name)


@pytest.mark.spark
@pytest.mark.parametrize("is_ansi", ["true", "false"])
def test_a_record_without_rows_is_counted_as_none(spark: SparkSession, is_ansi: str) -> None:
    """Without ANSI mode the size of null is -1."""
    session = spark.newSession()
    session.conf.set(ANSI, is_ansi)
    rows = Rows.several("a", ["x"])
    frame = session.sql(
        "select * from values (array(named_struct('x', 1), named_struct('x', 5))), (null), (null) as t(a)"
    )
    assert frame.selectExpr(rows.count("__row.x > 2"), rows.count()).collect() == [(1, 2)]
    single = Rows({"x": ("x",)}, "`has`")
    frame = session.sql("select * from values (1, true), (5, true), (7, false) as t(x, has)")
    assert frame.selectExpr(single.count("x > 2"), single.count()).collect() == [(1, 2)]


@pytest.mark.spark
def test_columns_are_added_with_names_of_their_own(spark: SparkSession) -> None:
    frame = Frame(spark.sql("select 1 as x, 2 as `__N__1`"))
    first = frame.add("__n", "x + 1")
    second = frame.add("__n", f"{first} * 10")
    assert (first, second) == ("__n__2", "__n__3")
    assert [row.asDict() for row in frame.frame.collect()] == [{"x": 1, "__N__1": 2, first: 2, second: 20}]
    assert not frame.has_origin
    with pytest.raises(NotCompilable, match="nosuch"):
        frame.type_of(Rows({}), "nosuch + 1")
    frame.add("__n", "nosuch")
    with pytest.raises(NotCompilable, match="nosuch"):
        _ = frame.frame


@pytest.mark.spark
def test_tables_are_read_with_the_place_of_their_records(spark: SparkSession) -> None:
    origin = "named_struct('topic', 't', 'partition', 3, 'offset', 7L, 'key', x'01', 'value', x'02', 'headers', null)"
    frame = Frame(
        spark.sql(f"select {origin} as __origin, 1 as x, array(named_struct('y', 1), named_struct('y', 2)) as a")
    )
    assert frame.has_origin
    maybe = frame.add_table("maybe", Rows({"it's": ("x",)}, "x > 5"))
    one = frame.add_table("one", Rows({"it's": ("x",)}))
    several = frame.add_table("several", Rows.several("a", ["y"]))
    assert maybe.read(frame.frame).collect() == []
    (row,) = one.read(frame.frame).collect()
    assert row.asDict(recursive=True) == {"it's": 1, "__origin": {"topic": "t", "partition": 3, "offset": 7}}
    assert [row.y for row in several.read(frame.frame).collect()] == [1, 2]
    assert frame.schema_of(Rows.several("a", ["y"])).simpleString() == "struct<y:int>"


@pytest.mark.spark
def test_structs_and_arrays_of_them_are_one_array(spark: SparkSession) -> None:
    structs = [struct_of({"a": "1"}), "if(false, named_struct('a', 2), null)"]
    arrays = ["array(named_struct('a', 3))", "cast(null as array<struct<a: int>>)"]
    single = [Encoded(each, Rows({})) for each in structs]
    several = [Encoded(each, Rows({}, array="a")) for each in arrays]
    found = spark.sql(f"select {together([*single, *several])} as x, {together(single)} as y").collect()[0]
    assert [each and each.a for each in found.x] == [1, None, 3]
    assert [each and each.a for each in found.y] == [1, None]


@pytest.mark.spark
def test_literals_mean_their_text(spark: SparkSession) -> None:
    text = "it's \\' a \"b\" `c`\n--"
    assert spark.sql(f"select {literal(text)} as x").collect()[0].x == text
