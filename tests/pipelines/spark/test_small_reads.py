"""A database answers queries of its own tables, in its own SQL, without Spark."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa

from odradek.pipelines.definition.model import Pipeline
from odradek.pipelines.spark.query_tables import Catalog, QueryContext
from odradek.pipelines.spark.querying import NeedsSpark, answer, answer_by_database, database_of, json_value, tables_of
from odradek.pipelines.spark.sessions.failures import PipelineError
from odradek.pipelines.spark.writing.databases import WarehouseRefused
from tests.pipelines.definition.definitions import sound

if TYPE_CHECKING:
    from pathlib import Path

    from odradek.pipelines.spark.query_tables import Answer


def database(file: Path, *statements: str) -> str:
    engine = sa.create_engine(f"sqlite:///{file}")
    with engine.begin() as connection:
        for each in statements:
            connection.exec_driver_sql(each)
    engine.dispose()
    return str(engine.url)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return database(
        tmp_path / "w.db",
        "create table pumps (id integer, name text)",
        "insert into pumps values (1, 'a'), (2, 'B')",
        "create table sites (pump integer, site text)",
        "insert into sites values (1, 'north')",
    )


def answered(text: str, context: QueryContext) -> list[dict[str, Any]]:
    found: Answer
    with answer(text, context, {}, None, pytest.fail) as found:
        return list(found.rows)


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("select id, name || '%' as n from PUMPS where name like 'A%'", [{"id": 1, "n": "a%"}]),
        ("select name, name from pumps order by 1", [{"name": "B", "name_2": "B"}, {"name": "a", "name_2": "a"}]),
        ('select "name" from pumps join sites on id = pump', [{"name": "a"}]),
        ("with x as (select max(id) as top from pumps) select top, typeof(top) as kind from x",
         [{"top": 2, "kind": "integer"}]),
        ("select ':a' as a, count(*) from pumps", [{"a": ":a", "count(*)": 2}]),
    ],
)  # fmt: skip
def test_tables_of_one_database_are_asked_in_its_own_sql(
    url: str, text: str, rows: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_arguments: object, **_settings: object) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr("odradek.pipelines.spark.sessions.session.start_session", never)
    assert answered(text, QueryContext(Pipeline("sql"), url)) == rows


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("select * from pumps join elsewhere on true", "elsewhere is not in the database"),
        ("select 1 as one", "it reads no table"),
        ("select * from pumps; select * from pumps", "it is not one query of sqlite"),
        ("select * from pumps where", "it is not one query of sqlite"),
        ("delete from pumps", "it is not a query"),
    ],
)
def test_other_queries_are_left_to_spark_with_the_reason(url: str, text: str, reason: str) -> None:
    with pytest.raises(NeedsSpark, match=reason):
        database_of(Catalog(QueryContext(Pipeline("sql"), url)), text)


def test_a_query_only_reads(url: str) -> None:
    with pytest.raises(WarehouseRefused, match="readonly"):
        answer_by_database("delete from pumps returning id", url)
    assert list(answer_by_database("select count(*) as n from pumps", url).rows) == [{"n": 2}]


def test_an_error_of_the_database_is_that_of_the_query(url: str) -> None:
    with pytest.raises(WarehouseRefused, match="no such column: nam"):
        answered("select nam from pumps", QueryContext(Pipeline("sql"), url))


def test_names_of_postgresql_are_read_as_it_reads_them() -> None:
    text = """select "N"::text from Last l join lateral (select 1) x on true where at > now() - interval '1 day'"""
    assert tables_of(text, "postgresql://h/d") == ["Last"]
    with pytest.raises(NeedsSpark):
        tables_of("select `n` from last", "postgresql://h/d")


def test_values_are_json() -> None:
    noon = datetime(2026, 1, 1, 12, microsecond=123456, tzinfo=UTC)
    given = [noon, date(2026, 1, 1), Decimal(7), Decimal("1.5"), float("nan"), b"a", [noon], {"a": Decimal(2)}, None]
    assert [json_value(each) for each in given] == [
        "2026-01-01T12:00:00.123Z", "2026-01-01", 7, 1.5, "NaN", "YQ==", ["2026-01-01T12:00:00.123Z"], {"a": 2}, None,
    ]  # fmt: skip


def test_a_view_that_was_never_written() -> None:
    pipeline = sound(
        """
        pipeline: p
        sources: {a: {topic: a, schema: "id INT"}}
        views: {last: {from: a, key: [id]}}
        """
    )
    catalog = Catalog(QueryContext(pipeline))
    with pytest.raises(PipelineError, match="'last' is declared, but its database does not have it; run the pipeline"):
        catalog.tables("select * from last")


def test_views_and_tables_with_a_database_of_their_own_are_answered_from_it(url: str, tmp_path: Path) -> None:
    pipeline = sound(
        f"""
        pipeline: p
        warehouse: sqlite:///{tmp_path / "own.db"}
        sources: {{a: {{topic: a, schema: "id INT"}}}}
        sinks: {{stored: {{from: a, table: pumps, key: [id], url: "{url}"}}}}
        views: {{last: {{from: a, key: [id], url: "{url}"}}}}
        """
    )
    assert answered("select count(*) as n from PUMPS", QueryContext(pipeline)) == [{"n": 2}]
    with pytest.raises(PipelineError, match="'last' is declared, but its database does not have it"):
        Catalog(QueryContext(pipeline)).tables("select * from last")
    other = QueryContext(pipeline, warehouse=database(tmp_path / "other.db", "create table pumps (id integer)"))
    assert database_of(Catalog(other), "select id from pumps") == other.warehouse  # names one database for all tables


def test_java_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from odradek.pipelines.spark.sessions.session import JavaMissing, require_java

    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(JavaMissing, match="Spark needs Java 17, and there is no Java; install it"):
        require_java()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(JavaMissing, match="JAVA_HOME"):
        require_java()
