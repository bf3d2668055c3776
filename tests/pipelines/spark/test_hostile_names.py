"""Names and values of definitions and records cannot become SQL, and passwords of databases are in no message."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import types as T  # noqa: N812 - its usual name

from odradek.pipelines.definition.model import JdbcOrigin, Pipeline
from odradek.pipelines.spark.previewing import ask
from odradek.pipelines.spark.query_tables import Catalog, QueryContext
from odradek.pipelines.spark.querying import answer_by_duckdb
from odradek.pipelines.spark.reading.jdbc import read_jdbc
from odradek.pipelines.spark.sessions.failures import PipelineError, plain_message
from odradek.pipelines.spark.sessions.jars import POSTGRESQL, JarsMissing, driver_jar
from odradek.pipelines.spark.writing.databases import WarehouseRefused, check_database
from odradek.pipelines.spark.writing.table_changes import TableChange
from odradek.pipelines.spark.writing.warehouse import Warehouse
from tests.pipelines.hostile_names import NAMES, VALUES, check_names

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.pipelines.spark.stage import Stage

PASSWORD = "sesame"
NO_SERVER = "127.0.0.1:1"


def test_names_and_values_stay_names_and_values_in_sqlite(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'w.db'}"
    warehouse = Warehouse(url)
    try:
        check_names(url, warehouse)
    finally:
        warehouse.engine.dispose()


@pytest.mark.parametrize("name", ["a\0b", ""])
def test_a_name_that_no_database_has_is_refused(tmp_path: Path, name: str) -> None:
    warehouse = Warehouse(f"sqlite:///{tmp_path / 'w.db'}")
    schema = T.StructType().add(name, T.LongType())
    with pytest.raises(WarehouseRefused):
        warehouse.write(None, [TableChange("t", schema, [(1,)], (name,))])
    warehouse.engine.dispose()


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://alice:{PASSWORD}@{NO_SERVER}/name",
        f"postgresql://{NO_SERVER}/name?user=alice&password={PASSWORD}",
        f"postgresql://alice@{NO_SERVER}/name?sslpassword={PASSWORD}&bogus=1",
        f"postgresql://alice:open{PASSWORD}@{PASSWORD}@{NO_SERVER}/name",
        f"postgresql://alice:{PASSWORD}@127.0.0.1:port/name",
        f"nothing://alice:{PASSWORD}@{NO_SERVER}/name?Password={PASSWORD}",
    ],
)
def test_no_message_has_the_password_of_a_url(url: str) -> None:
    with pytest.raises(PipelineError) as refused:
        check_database(url)
    assert PASSWORD not in str(refused.value)


@pytest.mark.more
@pytest.mark.spark
@pytest.mark.parametrize(
    ("url", "options"),
    [
        (f"jdbc:postgresql://host:99999999/name?user=alice&password={PASSWORD}", {}),
        (f"jdbc:postgresql:/name?user=alice&password={PASSWORD}", {}),
        (f"jdbc:postgresql://alice:{PASSWORD}@host:port/name", {}),
        (f"jdbc:postgresql://{NO_SERVER}/name?socketFactory=java.lang.String&password={PASSWORD}", {}),
        (f"jdbc:postgresql://{NO_SERVER}/name", {"user": "alice", "password": PASSWORD, "bogus": "1"}),
        (f"jdbc:nothing://alice:{PASSWORD}@host/name", {}),
    ],
)
def test_no_message_has_the_password_of_a_jdbc_url(spark: SparkSession, url: str, options: dict[str, str]) -> None:
    """The driver of PostgreSQL makes no object of a class that is none of its factories."""
    try:
        driver_jar(POSTGRESQL)
    except JarsMissing as error:
        pytest.skip(str(error))
    with pytest.raises(Exception, match=r".") as refused:
        read_jdbc(spark, JdbcOrigin(url, "t", None, options), url)
    assert PASSWORD not in plain_message(refused.value)


def test_tables_of_every_name_can_be_read(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'w.db'}"
    warehouse = Warehouse(url)
    names = T.StructType([T.StructField(name, T.StringType()) for name in NAMES])
    for table in ("'; drop table canary; --", 'a"b`c', "100% {0} :x"):
        warehouse.write(None, [TableChange(table, names, [NAMES], ("select",))])
        quoted = table.replace("`", "``")
        context = QueryContext(Pipeline("sql"), warehouse=url)
        query = f"select * from `{quoted}`"
        catalog = Catalog(context)
        answer = answer_by_duckdb(query, catalog, catalog.tables(query))
        assert [list(row.values()) for row in answer.rows] == [list(NAMES)]
    warehouse.engine.dispose()


@pytest.mark.more
@pytest.mark.spark
def test_fields_of_records_become_columns_and_no_sql(stage: Stage) -> None:
    """`--infer` makes the columns of the names of fields, which whoever writes to the topic chooses."""
    topic = stage.create("a.b--c", 1)
    record = {name: name for name in NAMES}
    stage.produce("a.b--c", [record, *({"select": each} for each in VALUES)])
    bare = Pipeline("sql", bootstrap_servers=stage.bootstrap_servers)

    def asked(text: str) -> list[dict[str, Any]]:
        context = QueryContext(bare, inferred=frozenset({topic}))
        catalog = Catalog(context)
        return list(ask(stage.spark, text, catalog, catalog.tables(text)).rows)

    (first,) = asked(f"select * from `{topic}` where `\u02bc\u201c\u201d` is not null")
    assert {name: first[name] for name in NAMES} == record
    found = asked(f"select `select` as it from `{topic}` where `\u02bc\u201c\u201d` is null order by _offset")
    assert [each["it"] for each in found] == list(VALUES)
    plain = QueryContext(bare)
    text = f"select value from `{topic}` order by offset limit 1"
    catalog = Catalog(plain)
    (whole,) = ask(stage.spark, text, catalog, catalog.tables(text)).rows
    assert json.loads(whole["value"]) == record
