"""Tables: one transaction has all changes of a batch and its number; a replayed batch changes nothing."""

from __future__ import annotations

import itertools
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock, call

import pytest
import sqlalchemy as sa
from pyspark.sql import types as T  # noqa: N812 - its usual name

from odradek.pipelines.definition.model import Pipeline, Sink, TableTarget
from odradek.pipelines.definition.places import Place
from odradek.pipelines.operating.backoff import Retry
from odradek.pipelines.spark.query_tables import table_names
from odradek.pipelines.spark.rebuilding import drop_table
from odradek.pipelines.spark.sessions.failures import retry_of
from odradek.pipelines.spark.writing import databases
from odradek.pipelines.spark.writing.databases import (
    WarehouseRefused,
    WarehouseUnavailable,
    check_database,
    check_databases,
    database_url,
    prepare_postgresql,
    reading,
)
from odradek.pipelines.spark.writing.stored_values import loses_values
from odradek.pipelines.spark.writing.table_changes import TableChange
from odradek.pipelines.spark.writing.warehouse import BatchNumber, RunReplaced, Warehouse

if TYPE_CHECKING:
    from pathlib import Path

ID = T.StructType().add("id", T.LongType())
SCHEMA = (
    T.StructType()
    .add("id", T.LongType())
    .add("at", T.TimestampType())
    .add("value", T.DoubleType())
    .add("tags", T.ArrayType(T.StringType()))
)
T1, T2 = datetime(2026, 1, 1, 12, tzinfo=UTC), datetime(2026, 1, 1, 13, tzinfo=UTC)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'w.db'}"


def rows(url: str, table: str = "t") -> list[tuple[Any, ...]]:
    with reading(url) as connection:
        return [tuple(row) for row in connection.execute(sa.text(f"select id, value, tags from {table} order by id"))]


def change(*values: tuple[Any, ...], key: tuple[str, ...] = ("id",), order_by: tuple[str, ...] = ()) -> TableChange:
    return TableChange("t", SCHEMA, values, key, order_by)


def test_nothing_of_an_earlier_run_is_written_after_a_later_one_has_started(url: str) -> None:
    earlier, later = Warehouse(url), Warehouse(url)
    earlier.claim("flow", earlier.last_epoch("flow") + 1)
    assert earlier.write(BatchNumber("a", 0, 1, "flow"), [change((1, T1, 1.0, None))])
    later.claim("flow", later.last_epoch("flow") + 1)
    later.claim("another", 1)
    with pytest.raises(RunReplaced, match="another run of this pipeline took over"):
        earlier.write(BatchNumber("a", 1, 1, "flow"), [change((2, T1, 2.0, None))])
    with pytest.raises(RunReplaced):  # of two that start at once, one stops
        earlier.claim("flow", 2)
    assert later.write(BatchNumber("b", 0, 2, "flow"), [change((3, T1, 3.0, None))])
    assert rows(url) == [(1, 1.0, None), (3, 3.0, None)]
    assert table_names(url) == ["t"]


def test_a_row_replaces_that_of_its_key(url: str) -> None:
    warehouse = Warehouse(url)
    warehouse.write(BatchNumber("q", 0), [change((1, T1, 1.0, ["a"]), (2, T1, 2.0, None))])
    warehouse.write(BatchNumber("q", 1), [change((2, T2, 3.0, []))])
    assert rows(url) == [(1, 1.0, '["a"]'), (2, 3.0, "[]")]


def test_a_whole_replaces_all_rows(url: str) -> None:
    warehouse = Warehouse(url)
    for number, total in enumerate((10.0, 20.0, 30.0)):
        warehouse.write(BatchNumber("q", number), [TableChange("t", SCHEMA, [(0, T1, total, None)], is_whole=True)])
    warehouse.write(BatchNumber("q", 3), [TableChange("t", SCHEMA, [], is_whole=True)])
    assert rows(url) == [(0, 30.0, None)]


def test_a_batch_that_comes_again_changes_nothing(url: str) -> None:
    for _ in range(2):
        assert Warehouse(url).write(BatchNumber("q", 0), [change((1, T1, 1.0, None), key=())]) == (_ == 0)
    assert Warehouse(url).write(BatchNumber("other", 0), [change((1, T1, 1.0, None), key=())])
    assert len(rows(url)) == 2


def test_a_batch_that_comes_again_is_read_to_its_end(url: str) -> None:
    """Spark fails a stateful batch that is not read to its end."""
    Warehouse(url).write(BatchNumber("q", 0), [change((1, T1, 1.0, None))])
    again = iter([(1, T1, 2.0, None), (2, T1, 2.0, None)])
    assert not Warehouse(url).write(BatchNumber("q", 0), [TableChange("t", SCHEMA, again, ("id",))])
    assert next(again, None) is None
    assert rows(url) == [(1, 1.0, None)]


def test_a_full_disk_may_have_room_later(url: str) -> None:
    warehouse = Warehouse(url)
    warehouse.write(BatchNumber("q", 0), [change((1, T1, 1.0, None))])

    @sa.event.listens_for(warehouse.engine, "connect", insert=True)
    def fill(connection: Any, _record: object) -> None:
        connection.execute("PRAGMA max_page_count=1")  # as many as there are

    warehouse.engine.dispose()
    with pytest.raises(WarehouseUnavailable, match="database or disk is full") as away:
        warehouse.write(BatchNumber("q", 1), [change(*((each, T1, 1.0, ["x" * 100]) for each in range(2000)))])
    assert retry_of(away.value) is Retry.LIKELY
    sa.event.remove(warehouse.engine, "connect", fill)
    warehouse.engine.dispose()
    assert warehouse.write(BatchNumber("q", 1), [change((2, T1, 1.0, None))])


def test_who_holds_a_lock_lets_go_of_it_later(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(databases, "BUSY_S", 0.01)
    holder, warehouse = Warehouse(url), Warehouse(url)
    warehouse.write(None, [change((1, T1, 1.0, None))])
    with holder.engine.begin():
        with pytest.raises(WarehouseUnavailable, match="database is locked"):
            warehouse.write(None, [change((2, T1, 1.0, None))])
        with pytest.raises(WarehouseUnavailable, match=r"sqlite:///.*database is locked"):
            drop_table(url, "t")


def test_a_table_that_was_dropped_does_not_come_back_by_itself(url: str) -> None:
    with pytest.raises(WarehouseRefused, match="no such table") as refused, reading(url) as reader:
        reader.execute(sa.text("select * from nowhere"))
    assert retry_of(refused.value) is Retry.NEVER


def test_what_is_committed_is_on_the_disk(url: str) -> None:
    """Spark does not replay a batch that its checkpoint has recorded as done, so it must survive a power failure."""
    with Warehouse(url).engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2  # FULL


def test_a_batch_is_written_whole_or_not_at_all(url: str) -> None:
    warehouse = Warehouse(url)
    broken = TableChange("u", ID, [(1,), ("x", "y")], ())
    with pytest.raises(ValueError, match="zip"):
        warehouse.write(BatchNumber("q", 0), [change((1, T1, 1.0, None)), broken])
    assert rows(url) == []
    assert warehouse.write(BatchNumber("q", 0), [change((1, T1, 1.0, None))])


def test_an_older_row_does_not_replace_a_newer_one(url: str) -> None:
    warehouse = Warehouse(url)
    for number, (time, value) in enumerate([(T2, 1.0), (T1, 2.0), (None, 3.0), (T2, 4.0)]):
        warehouse.write(BatchNumber("q", number), [change((1, time, value, None), order_by=("at",))])
    assert rows(url) == [(1, 4.0, None)]


def test_of_equal_rows_the_greatest_other_columns_decide(url: str) -> None:
    """In any order of arrival; null is the least value."""
    at_once = [(1, T1, 2.0, ["a"]), (1, T1, None, ["b"]), (1, T1, 2.0, ["b"]), (1, None, 9.0, None)]
    for number, batches in enumerate(itertools.permutations(at_once)):
        for batch, row in enumerate(batches):
            written = TableChange(f"t{number}", SCHEMA, [row], ("id",), ("at", "value", "tags"))
            Warehouse(url).write(BatchNumber(f"q{number}", batch), [written])
        assert rows(url, f"t{number}") == [(1, 2.0, '["b"]')]


def test_replaced_keys_are_deleted_before_rows_are_written(url: str) -> None:
    warehouse = Warehouse(url)
    warehouse.write(BatchNumber("q", 0), [change((1, T1, 1.0, None), (2, T2, 2.0, None), (3, None, 3.0, None))])
    replacing = TableChange("t", SCHEMA, [(2, T1, 4.0, None)], ("id",), replaced=[(1,), (2,), (5,)])
    assert warehouse.write(BatchNumber("q", 1), [replacing])
    assert rows(url) == [(2, 4.0, None), (3, 3.0, None)]
    assert not warehouse.write(BatchNumber("q", 1), [replacing])
    warehouse.write(BatchNumber("q", 2), [TableChange("t", SCHEMA, [], (), replaced=[()])])
    assert rows(url) == []


def test_columns_that_the_table_lacks_are_named(url: str) -> None:
    Warehouse(url).write(None, [change((1, T1, 1.0, None))])
    wider = TableChange(
        "t", T.StructType().add("id", T.LongType()).add("colour", T.StringType()), [(1, "red")], ("id",)
    )
    with pytest.raises(WarehouseRefused, match="table t has no column colour"):
        Warehouse(url).write(None, [wider])


def test_a_reader_sees_one_instant_and_keeps_the_writer_from_nothing(url: str) -> None:
    warehouse = Warehouse(url)
    warehouse.write(None, [change((1, T1, 1.0, None))])
    value = sa.text("select value from t")
    with reading(url) as reader:
        assert reader.execute(value).scalar() == 1.0
        warehouse.write(None, [change((1, T2, 2.0, None))])
        assert reader.execute(value).scalar() == 1.0
    with reading(url) as reader:
        assert reader.execute(value).scalar() == 2.0


def test_times_without_a_zone_are_not_moved(url: str) -> None:
    schema = T.StructType().add("id", T.LongType()).add("local", T.TimestampNTZType())
    local = datetime(2026, 7, 1, 12)  # noqa: DTZ001 - it has none
    Warehouse(url).write(None, [TableChange("n", schema, [(1, local)], ("id",))])
    with reading(url) as reader:
        assert reader.execute(sa.text("select local from n")).scalar() == "2026-07-01 12:00:00.000000"


def test_a_database_that_cannot_be_written_to_is_reported(tmp_path: Path) -> None:
    with pytest.raises(WarehouseRefused, match="unable to open database file"):
        check_database(f"sqlite:///{tmp_path / 'nowhere' / 'w.db'}")
    (tmp_path / "text.db").write_text("this is no database, " * 100)
    with pytest.raises(WarehouseRefused, match="file is not a database"):
        check_database(f"sqlite:///{tmp_path / 'text.db'}")


def test_a_pipeline_that_names_no_database_has_one_of_its_name(tmp_path: Path) -> None:
    pipeline = Pipeline("rigs", place=Place(str(tmp_path / "pipeline.yml"), 1, 1))
    assert database_url(pipeline, None) == f"sqlite:///{tmp_path / 'rigs.db'}"
    assert database_url(pipeline, "postgresql://h/d") == "postgresql://h/d"


def test_connections_of_any_driver_of_postgresql_get_the_time_zone_of_utc() -> None:
    """Those of psycopg2 and pg8000 have no execute()."""
    connection = Mock(spec=["cursor", "commit"])
    prepare_postgresql(connection, None)
    assert connection.mock_calls == [
        call.cursor(),
        call.cursor().execute("SET TIME ZONE 'UTC'"),
        call.cursor().close(),
        call.commit(),
    ]


@pytest.mark.parametrize(
    ("before", "after", "is_refused"),
    [
        (T.IntegerType(), T.DecimalType(10, 2), True),
        (T.DateType(), T.TimestampType(), True),
        (T.LongType(), T.DecimalType(10, 0), False),
        (T.DoubleType(), T.LongType(), False),
        (T.TimestampType(), T.TimestampType(), False),
    ],
)
def test_a_column_that_would_cut_values_is_refused(
    url: str, before: T.DataType, after: T.DataType, is_refused: bool
) -> None:
    """PostgreSQL rounds 1.5 for a column of integers, after a definition has changed the type of its column."""
    first, second = (TableChange("t", T.StructType().add("v", kind), []) for kind in (before, after))
    assert Warehouse(url).write(BatchNumber("q", 0), [first])
    if not is_refused:
        assert Warehouse(url).write(BatchNumber("q", 1), [second])
        return
    with pytest.raises(WarehouseRefused, match=r"table t: its column v of type .* would cut values of type"):
        Warehouse(url).write(BatchNumber("q", 1), [second])


def test_a_column_of_integers_has_fractions_in_sqlite_only(url: str) -> None:
    first, second = (T.StructType().add("v", kind) for kind in (T.LongType(), T.DoubleType()))
    assert Warehouse(url).write(BatchNumber("q", 0), [TableChange("t", first, [(1,)])])
    assert Warehouse(url).write(BatchNumber("q", 1), [TableChange("t", second, [(1.5,)])])
    with reading(url) as connection:
        assert list(connection.execute(sa.text("select v from t order by v")).scalars()) == [1, 1.5]
    assert loses_values(sa.BigInteger(), sa.Double(), "postgresql")


def test_a_database_has_one_url(tmp_path: Path) -> None:
    """A batch is recognized by its number, so that of two URLs of a database only the first would get its rows."""
    (tmp_path / "link.db").symlink_to(tmp_path / "w.db")
    place = Place(str(tmp_path / "p.yml"), 1, 1)
    urls = ("sqlite:///w.db", f"sqlite:///../{tmp_path.name}/w.db", "sqlite:///link.db")
    sinks = [Sink(f"s{number}", "a", TableTarget("t", url=url)) for number, url in enumerate(urls)]
    pipeline = Pipeline("p", place=place, sinks=tuple(sinks[:2]))
    check_databases(pipeline)
    assert len({database_url(pipeline, url) for url in urls[:2]}) == 1
    with pytest.raises(WarehouseRefused, match=r"w\.db and .*link\.db are one database; write the same URL"):
        check_databases(replace(pipeline, sinks=tuple(sinks)))
