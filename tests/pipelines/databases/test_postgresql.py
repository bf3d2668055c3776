"""Tables and views on PostgreSQL: atomic batches, each once, all types, and readable errors."""

from __future__ import annotations

import threading
import uuid
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import types as T  # noqa: N812 - its usual name

from odradek.pipelines.spark.writing.databases import WarehouseRefused, WarehouseUnavailable, check_database
from odradek.pipelines.spark.writing.table_changes import TableChange
from odradek.pipelines.spark.writing.warehouse import BatchNumber, RunReplaced, Warehouse
from tests.pipelines.hostile_names import check_names
from tests.pipelines.spark.change_model import (
    Change,
    batches_of,
    change_lists,
    current_rows,
    decided,
    history_rows,
    stored,
)
from tests.pipelines.spark.change_model import write as write_changes
from tests.pipelines.spark.test_order import ORDERS
from tests.pipelines.spark.test_order import check_database as check_order

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.pipelines.databases.server import Server

ROWS = 40
BATCHES = 25
SCHEMA = T.StructType().add("id", T.LongType()).add("at", T.TimestampType()).add("value", T.LongType())
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
def warehouse(postgres: Server, database: str) -> Iterator[Warehouse]:
    made = Warehouse(postgres.url(database))
    yield made
    made.engine.dispose()


def change(*rows: tuple[Any, ...], table: str = "t", key: tuple[str, ...] = ("id",), **rest: Any) -> TableChange:
    return TableChange(table, SCHEMA, rows, key, **rest)


def test_rows_replace_those_of_their_key_and_a_replay_changes_nothing(
    warehouse: Warehouse, postgres: Server, database: str
) -> None:
    assert warehouse.write(BatchNumber("q", 0), [change((1, NOON, 1), (2, NOON, 2), (2, NOON, 3))])
    assert warehouse.write(BatchNumber("q", 1), [change((2, NOON, 4)), change((1, NOON, 1), table="log", key=())])
    assert not warehouse.write(BatchNumber("q", 1), [change((2, NOON, 5)), change((1, NOON, 1), table="log", key=())])
    assert postgres.execute("select id, value from t order by id", database) == [(1, 1), (2, 4)]
    assert postgres.execute("select count(*) from log", database) == [(1,)]
    assert postgres.execute("select * from odradek_batches", database) == [("q", 1)]


def test_a_later_run_waits_for_the_open_batch_of_an_earlier_one(
    warehouse: Warehouse, postgres: Server, database: str
) -> None:
    """After it has started, nothing of the earlier run is committed."""
    later = Warehouse(postgres.url(database))
    warehouse.claim("flow", warehouse.last_epoch("flow") + 1)
    starts, is_claimed = threading.Event(), threading.Event()

    def claim() -> None:
        starts.wait(60)
        later.claim("flow", 2)
        is_claimed.set()

    def rows() -> Iterator[tuple[Any, ...]]:
        starts.set()
        assert not is_claimed.wait(1)
        yield 1, NOON, 1

    claiming = threading.Thread(target=claim)
    claiming.start()
    assert warehouse.write(BatchNumber("a", 0, 1, "flow"), [TableChange("t", SCHEMA, rows(), ("id",))])
    claiming.join(60)
    assert is_claimed.is_set()
    with pytest.raises(RunReplaced):
        warehouse.write(BatchNumber("a", 1, 1, "flow"), [change((2, NOON, 2))])
    assert later.write(BatchNumber("b", 0, 2, "flow"), [change((3, NOON, 3))])
    later.engine.dispose()
    assert postgres.execute("select id from t order by id", database) == [(1,), (3,)]


def test_a_later_run_does_not_wait_for_ever(warehouse: Warehouse, postgres: Server, database: str) -> None:
    """The machine of the earlier run may be cut off within a batch, for hours before the server notices."""
    later = Warehouse(postgres.url(database), claim_wait_s=0.3)
    warehouse.claim("flow", 1 + warehouse.last_epoch("flow"))

    def rows() -> Iterator[tuple[Any, ...]]:
        assert later.last_epoch("flow") == 1
        with pytest.raises(WarehouseUnavailable, match=r"an earlier run has had a batch open for more than 0\.3 s"):
            later.claim("flow", 2)
        yield 1, NOON, 1

    assert warehouse.write(BatchNumber("a", 0, 1, "flow"), [TableChange("t", SCHEMA, rows(), ("id",))])
    later.claim("flow", 2)
    later.engine.dispose()


def test_an_older_row_does_not_replace_a_newer_one(warehouse: Warehouse, postgres: Server, database: str) -> None:
    for number, (hour, value) in enumerate([(12, 1), (11, 2), (13, 3)]):
        warehouse.write(BatchNumber("q", number), [change((1, NOON.replace(hour=hour), value), order_by=("at",))])
    assert postgres.execute("select at, value from t", database) == [(NOON.replace(hour=13), 3)]


@pytest.mark.parametrize(
    ("kind", "ordered"),
    [
        (T.BooleanType(), [None, False, True]),
        (T.DateType(), [None, date(1, 1, 1), date(9999, 12, 31)]),
        (T.TimestampType(), [None, datetime(1, 1, 1, tzinfo=UTC), NOON]),
        (T.BinaryType(), [None, b"", b"\x00", b"\xff"]),
        (T.DecimalType(20, 4), [None, Decimal("-1.5000"), Decimal("1234567890123456.7891")]),
        (T.StringType(), [None, "", "B", "a", "é", "\U0001f600"]),
    ],
)
def test_the_greatest_value_of_any_type_is_kept(
    warehouse: Warehouse, postgres: Server, database: str, kind: T.DataType, ordered: list[Any]
) -> None:
    """Null is the least value, text is compared by its bytes."""
    schema = T.StructType().add("id", T.LongType()).add("value", kind)
    for number, value in enumerate([*ordered[1::2], *ordered[::2]]):
        warehouse.write(BatchNumber("q", number), [TableChange("t", schema, [(1, value)], ("id",), ("value",))])
    assert postgres.execute("select value from t", database) == [(ordered[-1],)]


def test_a_batch_that_fails_in_the_middle_leaves_nothing(warehouse: Warehouse, postgres: Server, database: str) -> None:
    warehouse.write(BatchNumber("q", 0), [change((1, NOON, 1))])

    def broken() -> Iterator[tuple[Any, ...]]:
        yield from ((number, NOON, 0) for number in range(2000))
        raise RuntimeError("the driver is gone")

    with pytest.raises(RuntimeError, match="the driver is gone"):
        warehouse.write(BatchNumber("q", 1), [TableChange("t", SCHEMA, broken(), ("id",))])
    assert postgres.execute("select id, value from t", database) == [(1, 1)]
    assert warehouse.write(BatchNumber("q", 1), [change((1, NOON, 2))])


def test_a_connection_that_is_cut_costs_the_batch_and_no_more(
    warehouse: Warehouse, postgres: Server, database: str
) -> None:
    warehouse.write(BatchNumber("q", 0), [change((1, NOON, 1))])

    def cut() -> Iterator[tuple[Any, ...]]:
        yield from ((number, NOON, 0) for number in range(600))
        postgres.execute(f"select pg_terminate_backend(pid) from pg_stat_activity where datname = '{database}'")
        yield from ((number, NOON, 0) for number in range(600, 1200))

    with pytest.raises(WarehouseUnavailable, match=r"postgresql.*(terminat|closed)"):
        warehouse.write(BatchNumber("q", 1), [TableChange("t", SCHEMA, cut(), ("id",))])
    assert warehouse.write(BatchNumber("q", 1), [change((1, NOON, 2))])
    assert postgres.execute("select id, value from t", database) == [(1, 2)]


def test_readers_see_whole_batches_only(warehouse: Warehouse, postgres: Server, database: str) -> None:
    seen: list[tuple[int, int, int, int]] = []
    is_done = threading.Event()

    def write(number: int) -> None:
        rows = [(row, NOON, number) for row in range(ROWS)]
        warehouse.write(BatchNumber("q", number), [change(*rows), change(*rows, table="u")])

    def read() -> None:
        query = (
            "select (select min(value) from t), (select max(value) from t), "
            "(select min(value) from u), (select max(value) from u)"
        )
        with psycopg.connect(postgres.url(database), autocommit=True) as connection:
            while not is_done.is_set() or not seen:
                seen.append(connection.execute(query).fetchall()[0])

    write(0)
    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    try:
        for number in range(1, BATCHES):
            write(number)
    finally:
        is_done.set()
        for reader in readers:
            reader.join()
    assert all(len(set(row)) == 1 for row in seen)


def test_types_are_kept(warehouse: Warehouse, postgres: Server, database: str) -> None:
    kinds = {
        "id": T.LongType(), "flag": T.BooleanType(), "small": T.ShortType(), "price": T.DecimalType(20, 4),
        "ratio": T.DoubleType(), "at": T.TimestampType(), "local": T.TimestampNTZType(), "day": T.DateType(),
        "raw": T.BinaryType(), "name": T.StringType(),
    }  # fmt: skip
    schema = T.StructType()
    for name, kind in kinds.items():
        schema.add(name, kind)
    local = datetime(2026, 7, 1, 12)  # noqa: DTZ001 - it has none
    values = (
        1, True, 2, Decimal("1234567890123456.7891"), 0.1, NOON.astimezone().replace(tzinfo=None), local,
        date(2026, 1, 2), bytearray(b"\x00\xff"), "n\0ul",
    )  # fmt: skip
    nothing = (2, *[None] * (len(kinds) - 1))
    warehouse.write(None, [TableChange("kinds", schema, [values, nothing], ("id",))])
    (row, empty) = postgres.execute("select * from kinds order by id", database)
    assert row == (
        1, True, 2, Decimal("1234567890123456.7891"), 0.1, NOON, local, date(2026, 1, 2), b"\x00\xff", "n\ufffdul",
    )  # fmt: skip
    assert empty == nothing
    types = "select data_type from information_schema.columns where table_name = 'kinds' order by ordinal_position"
    assert [kind for (kind,) in postgres.execute(types, database)] == [
        "bigint", "boolean", "integer", "numeric", "double precision", "timestamp with time zone",
        "timestamp without time zone", "date", "bytea", "text",
    ]  # fmt: skip


def test_a_key_may_be_long_and_may_not_be_null(warehouse: Warehouse, postgres: Server, database: str) -> None:
    schema = T.StructType().add("name", T.StringType()).add("value", T.LongType())
    warehouse.write(None, [TableChange("names", schema, [("x" * 2000, 1)], ("name",))])
    assert postgres.execute("select length(name) from names", database) == [(2000,)]
    with pytest.raises(WarehouseRefused, match="table names: the key column name is null in a row"):
        warehouse.write(None, [TableChange("names", schema, [(None, 1)], ("name",))])


def test_the_socket_of_the_machine_will_do(postgres: Server, database: str) -> None:
    made = Warehouse(postgres.socket_url(database))
    assert made.write(BatchNumber("q", 0), [change((1, NOON, 1))])
    made.engine.dispose()
    assert postgres.execute("select id from t", database) == [(1,)]


def test_a_database_is_the_same_by_each_of_its_urls(postgres: Server, database: str) -> None:
    identity = check_database(postgres.url(database))
    assert check_database(postgres.socket_url(database)) == identity
    assert check_database(postgres.url()) != identity


def test_a_column_without_time_zone_gets_the_time_of_utc(warehouse: Warehouse, postgres: Server, database: str) -> None:
    """The server of these tests is in another time zone."""
    postgres.execute("create table t (id bigint primary key, at timestamp, value bigint)", database)
    warehouse.write(BatchNumber("q", 0), [change((1, NOON, 1))])
    assert postgres.execute("select at from t", database) == [(NOON.replace(tzinfo=None),)]


def test_what_a_server_refuses_is_reported_in_a_sentence(postgres: Server) -> None:
    with pytest.raises(WarehouseRefused, match='database "nowhere" does not exist'):
        check_database(postgres.url("nowhere"))
    with pytest.raises(WarehouseRefused, match='role "nobody_known" does not exist'):
        check_database(postgres.url(user="nobody_known"))
    with pytest.raises(WarehouseUnavailable, match=r"postgresql\+psycopg://u:\*\*\*@127.0.0.1:1/d: .*refused"):
        check_database("postgresql://u:secret@127.0.0.1:1/d")


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[pytest.mark.soak] * (kind in {"BIGINT", "DOUBLE"})) for kind in ORDERS]
)
def test_the_latest_row_of_each_key_is_kept_as_in_sqlite(warehouse: Warehouse, kind: str) -> None:
    check_order(warehouse, kind)


def test_text_is_ordered_by_its_bytes_whatever_the_collation(
    warehouse: Warehouse, postgres: Server, database: str
) -> None:
    collations = postgres.execute("select collname from pg_collation where collname = 'und-x-icu'", database)
    if not collations:
        pytest.skip("this PostgreSQL has no ICU")
    postgres.execute('create table t (id bigint primary key, at text collate "und-x-icu")', database)
    schema = T.StructType().add("id", T.LongType()).add("at", T.StringType())
    for number, text in enumerate(["a", "B"]):  # "B" is after "a" in a dictionary, and before it by its bytes
        warehouse.write(BatchNumber("q", number), [TableChange("t", schema, [(1, text)], ("id",), ("at",))])
    assert postgres.execute("select at from t", database) == [("a",)]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25, deadline=None)
@given(
    change_lists(st.sampled_from(["", "B", "a", "é", "\U0001f600"])),
    st.lists(st.integers(0, 99)),
    st.booleans(),
    st.booleans(),
)
def test_change_data_gives_the_table_of_the_model(
    warehouse: Warehouse, changes: list[Change], cuts: list[int], history: bool, has_ties: bool
) -> None:
    table = f"t{uuid.uuid4().hex}"
    write_changes(warehouse, table, batches_of(changes, cuts), history=history, has_ties=has_ties)
    expected = decided(changes) if has_ties else changes
    assert stored(warehouse, table) == (history_rows if history else current_rows)(expected)


def test_names_and_values_stay_names_and_values(warehouse: Warehouse, postgres: Server, database: str) -> None:
    check_names(postgres.url(database), warehouse)
