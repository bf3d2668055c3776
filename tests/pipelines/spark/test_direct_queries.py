"""Queries that the database answers give what Spark gives."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from odradek.pipelines.definition.model import Pipeline
from odradek.pipelines.spark.direct_expressions import NotDirect
from odradek.pipelines.spark.direct_queries import answer_directly
from odradek.pipelines.spark.querying import Catalog, NoSuchTable, QueryContext, answer, ask, distinct_names
from tests.example_counts import examples
from tests.pipelines.definition.definitions import sound

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

NAMES = ("id", "Name", "mean", "at", "day", "ok")
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
NEW_YEAR = date(2026, 1, 1)
VALUES: list[tuple[Any, ...]] = [
    (1, "a", 1.5, NOON.replace(microsecond=123456), NEW_YEAR, True),
    (2, "B", -0.25, datetime(2026, 1, 2, tzinfo=UTC), date(2025, 12, 31), False),
    (3, "é", None, None, None, None),
    (2**62, None, 1e300, NOON, NEW_YEAR, True),
    (-5, "a", 1.5, datetime(1999, 12, 31, 23, 59, 59, tzinfo=UTC), None, True),
]
ROWS = [dict(zip(NAMES, values, strict=True)) for values in VALUES]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    found = f"sqlite:///{tmp_path_factory.mktemp('direct') / 'w.db'}"
    engine = sa.create_engine(found)
    table = sa.Table(
        "pumps", sa.MetaData(),
        sa.Column("id", sa.BigInteger), sa.Column("Name", sa.Text), sa.Column("mean", sa.Double),
        sa.Column("at", sa.DateTime(timezone=True)), sa.Column("day", sa.Date), sa.Column("ok", sa.Boolean),
    )  # fmt: skip
    table.create(engine)
    with engine.begin() as connection:
        connection.execute(table.insert(), ROWS)
    engine.dispose()
    return found


def directly(text: str, url: str) -> list[dict[str, Any]]:
    found = answer_directly(text, url, "pumps")
    names = distinct_names(found.names)
    return [dict(zip(names, row, strict=True)) for row in found.rows]


COLUMNS = ["id", "name", "MEAN", "p.at", "day", "ok"]
CONSTANTS = {
    "id": ["1", "-5", "4611686018427387904"], "name": ["'a'", "'B'", "'é'", "''"], "MEAN": ["1.5", "0", "-0.25"],
    "p.at": ["'2026-01-01'", "'2026-01-01 12:00:00'", "'2026-01-01 12:00:00.123456'"],
    "day": ["'2026-01-01'"], "ok": ["true", "false"],
}  # fmt: skip
OPERATORS = ["=", "<>", "<", "<=", ">", ">="]


@st.composite
def conditions(draw: st.DrawFn, depth: int = 2) -> str:
    kind = draw(st.sampled_from(["compare", "null", "in", "between", "and", "or", "not", "bool"]))
    column = draw(st.sampled_from(COLUMNS))
    constant = st.sampled_from(CONSTANTS[column])
    if kind == "null":
        return f"{column} is {draw(st.sampled_from(['', 'not ']))}null"
    if kind == "in":
        return f"{column} in ({draw(constant)}, {draw(constant)})"
    if kind == "between":
        return f"{column} between {draw(constant)} and {draw(constant)}"
    if kind == "bool":
        return "ok"
    if kind == "compare" or depth == 0:
        return f"{column} {draw(st.sampled_from(OPERATORS))} {draw(constant)}"
    if kind == "not":
        return f"not ({draw(conditions(depth - 1))})"
    return f"({draw(conditions(depth - 1))}) {kind} ({draw(conditions(depth - 1))})"


@st.composite
def queries(draw: st.DrawFn) -> str:
    where = f" where {draw(conditions())}" if draw(st.booleans()) else ""
    if draw(st.booleans()):
        key = draw(st.sampled_from(["name", "day", "ok", "p.at", "id"]))
        calls = ["count(*)", "count(mean) as n", "max(id)", "min(name)", "sum(id) s", "max(p.at)", "min(day) d"]
        items = draw(st.lists(st.sampled_from(calls), min_size=1, max_size=3))
        group = f" group by {key}" if draw(st.booleans()) else ""
        return f"select {', '.join([key] * bool(group) + items)} from pumps p{where}{group}"
    columns = draw(st.sampled_from(["*", "id, name", "p.id as x, id, MEAN", "at, day, ok", "distinct name, ok"]))
    order = " order by id desc, name" if "distinct" not in columns and draw(st.booleans()) else ""
    return f"select {columns} from pumps p{where}{order}"


@pytest.mark.spark
@settings(max_examples=examples(10), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(queries())
def test_the_database_answers_as_spark_does(spark: SparkSession, url: str, text: str) -> None:
    context = QueryContext(Pipeline("sql"), url)
    by_spark = list(ask(spark, text, Catalog(context).readers(text)).rows)
    found = directly(text, url)
    assert [list(row) for row in found[:1]] == [list(row) for row in by_spark[:1]]
    if "order by" in text:
        assert found == by_spark
    else:
        assert sorted(map(json.dumps, found)) == sorted(map(json.dumps, by_spark))


def test_a_view_is_answered_without_spark(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_arguments: object, **_settings: object) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr("odradek.pipelines.spark.querying.start_session", never)
    said: list[str] = []
    with answer(
        "select id, at from PUMPS where id = 1", QueryContext(Pipeline("sql"), url), {}, None, said.append
    ) as it:
        assert list(it.rows) == [{"id": 1, "at": "2026-01-01T12:00:00.123Z"}]
    assert said == []


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("select upper(name) from pumps", "it calls upper"),
        ("select id + 1 from pumps", "it computes an expression"),
        ("select avg(mean) from pumps", "it calls avg"),
        ("select sum(mean) from pumps", "it computes sum of double"),
        ("select id from pumps where name like 'a%'", "its WHERE has an expression"),
        ("select id from pumps where name = 1", "it compares the column 'Name' with another kind of value"),
        ("select id from pumps where at > 'yesterday'", "it compares the column 'at' with another kind of value"),
        ("select name, count(*) from pumps", "'name' is not grouped"),
        ("select mean, count(*) from pumps group by mean", "it groups by a DOUBLE"),
        ("select nam from pumps", "'nam' is not a column of the table"),
        ("select id from pumps group by id having count(*) > 1", "it has HAVING"),
        ("select * from pumps union all select * from pumps", "it is a UNION"),
        ("select id from pumps p join pumps q on p.id = q.id", "it has JOINS"),
        (r"select id from pumps where name = 'a\n'", "its syntax is left to Spark"),
    ],
)
def test_other_queries_are_left_to_spark(url: str, text: str, reason: str) -> None:
    with pytest.raises(NotDirect, match="^" + reason):
        directly(text, url)


def test_values_of_other_types_than_declared_are_left_to_spark(tmp_path: Path) -> None:
    found = f"sqlite:///{tmp_path / 'w.db'}"
    engine = sa.create_engine(found)
    with engine.begin() as connection:
        connection.exec_driver_sql("create table pumps (id integer, name text)")
        connection.exec_driver_sql("insert into pumps values ('x', 'a')")
    engine.dispose()
    with pytest.raises(NotDirect, match="the column 'id' has values of several types"):
        directly("select id from pumps", found)


def test_a_view_that_was_never_written(tmp_path: Path) -> None:
    pipeline = sound(
        """
        pipeline: p
        sources: {a: {topic: a, schema: "id INT"}}
        views: {last: {from: a, key: [id]}}
        """
    )
    catalog = Catalog(QueryContext(pipeline))
    with pytest.raises(NoSuchTable, match="'last' is declared, but its database does not have it; run the pipeline"):
        catalog.readers("select * from last")


def test_views_and_tables_with_a_database_of_their_own_are_answered_from_it(url: str, tmp_path: Path) -> None:
    pipeline = sound(
        f"""
        pipeline: p
        warehouse: sqlite:///{tmp_path / "w.db"}
        sources: {{a: {{topic: a, schema: "id INT"}}}}
        sinks: {{stored: {{from: a, table: pumps, mode: upsert, key: [id], url: "{url}"}}}}
        views: {{last: {{from: a, key: [id], url: "{url}"}}}}
        """
    )
    with answer("select count(*) as n from PUMPS", QueryContext(pipeline), {}, None, pytest.fail) as found:
        assert list(found.rows) == [{"n": len(ROWS)}]
    with pytest.raises(NoSuchTable, match="'last' is declared, but its database does not have it"):
        Catalog(QueryContext(pipeline)).readers("select * from last")
    engine = sa.create_engine(f"sqlite:///{tmp_path / 'other.db'}")
    with engine.begin() as connection:
        connection.exec_driver_sql("create table pumps (id integer)")
    engine.dispose()
    other = QueryContext(pipeline, warehouse=str(engine.url))  # names one database for all tables
    assert Catalog(other).only_stored_table("select id from pumps") == (str(engine.url), "pumps")


def test_java_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from odradek.pipelines.spark.sessions.session import JavaMissing, require_java

    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(JavaMissing, match="Spark needs Java 17, and there is no Java; install it"):
        require_java()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(JavaMissing, match="JAVA_HOME"):
        require_java()
