"""Change data in tables: the result depends on the sequence of the changes, not on their order or their batches."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from odradek.pipelines.spark.query_tables import table_names
from odradek.pipelines.spark.writing.databases import WarehouseRefused
from odradek.pipelines.spark.writing.table_changes import ChangeData, deletions_name
from odradek.pipelines.spark.writing.warehouse import BatchNumber, Warehouse
from tests.pipelines.spark.change_model import (
    SCHEMA,
    Change,
    batches_of,
    change_lists,
    current_rows,
    decided,
    history_rows,
    stored,
    write,
)

if TYPE_CHECKING:
    from pathlib import Path

CUTS = st.lists(st.integers(0, 99), max_size=4)
ONE_DATABASE = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'w.db'}"


@pytest.fixture
def warehouse(url: str) -> Warehouse:
    made = Warehouse(url)
    # A commit that is not synced, because Hypothesis makes hundreds of them.
    sa.event.listen(made.engine, "connect", lambda connection, _: connection.execute("PRAGMA synchronous=OFF"))
    return made


@ONE_DATABASE
@given(change_lists(), CUTS, st.booleans())
def test_a_table_has_what_the_model_says(
    warehouse: Warehouse, changes: list[Change], cuts: list[int], history: bool
) -> None:
    table = f"t{uuid.uuid4().hex}"
    write(warehouse, table, batches_of(changes, cuts), history=history)
    assert stored(warehouse, table) == (history_rows if history else current_rows)(changes)


@ONE_DATABASE
@given(st.data(), change_lists(st.sampled_from(["", "B", "a", "é", "\U0001f600"])), CUTS, st.booleans())
def test_any_order_of_arrival_gives_the_same_table(
    warehouse: Warehouse, data: st.DataObject, changes: list[Change], cuts: list[int], history: bool
) -> None:
    """Of changes with one sequence the last to arrive counts, so each sequence is used once."""
    unique = list({(each.id, each.region, each.lsn): each for each in changes}.values())
    table = f"t{uuid.uuid4().hex}"
    write(warehouse, table, batches_of(data.draw(st.permutations(unique)), cuts), history=history)
    assert stored(warehouse, table) == (history_rows if history else current_rows)(unique)


@ONE_DATABASE
@given(change_lists(st.sampled_from(["", "B", "a"])), CUTS, st.booleans())
def test_of_changes_with_one_sequence_a_deletion_or_the_greatest_counts(
    warehouse: Warehouse, changes: list[Change], cuts: list[int], history: bool
) -> None:
    table = f"t{uuid.uuid4().hex}"
    write(warehouse, table, batches_of(changes, cuts), history=history, has_ties=True)
    assert stored(warehouse, table) == (history_rows if history else current_rows)(decided(changes))


def changes(*rows: tuple[int, bool], history: bool = False, remember: timedelta | None = None) -> ChangeData:
    """Changes of one key with these sequences, and whether they delete."""
    found = [Change(1, "north", lsn, lsn, is_deleted).row for lsn, is_deleted in rows]
    return ChangeData("t", SCHEMA, found, ("id",), "lsn", history, remember)


def test_a_late_change_does_not_resurrect_a_deleted_key(warehouse: Warehouse) -> None:
    for each in ((1, False), (5, True), (3, False)):
        warehouse.write(None, [changes(each)])
    assert stored(warehouse, "t") == set()
    warehouse.write(None, [changes((6, False))])
    assert [row[2] for row in stored(warehouse, "t")] == [6]


def test_a_late_change_takes_its_place_in_the_history(warehouse: Warehouse) -> None:
    for each in ((1, False), (5, True), (3, False), (0, False)):
        warehouse.write(None, [changes(each, history=True)])
    found = sorted((row[4], row[5], bool(row[6])) for row in stored(warehouse, "t"))
    assert found == [(0, 1, False), (1, 3, False), (3, 5, False)]


def test_a_deletion_is_forgotten_after_the_time_that_is_set(warehouse: Warehouse) -> None:
    warehouse.write(None, [changes((5, True), remember=timedelta(days=1))])
    warehouse.write(None, [changes((3, False), remember=timedelta(days=1))])
    assert stored(warehouse, "t") == set()
    warehouse.write(None, [changes(remember=timedelta(0))])
    warehouse.write(None, [changes((3, False))])
    assert [row[2] for row in stored(warehouse, "t")] == [3]


def test_the_table_of_deletions_is_not_shown(warehouse: Warehouse, url: str) -> None:
    warehouse.write(BatchNumber("q", 0), [changes((1, True))])
    assert table_names(url) == ["t"]
    assert stored(warehouse, deletions_name("t"))
    assert len(deletions_name("x" * 60)) <= 63


def test_a_change_without_a_sequence_or_key_is_refused(warehouse: Warehouse) -> None:
    for history in (False, True):
        for row, what in (((1, "n", None, 1, False), "sequence lsn"), ((None, "n", 1, 1, False), "key column id")):
            data = ChangeData("t" + str(history), SCHEMA, [row], ("id",), "lsn", history)
            with pytest.raises(WarehouseRefused, match=f"{what} is null"):
                warehouse.write(None, [data])


def test_a_table_of_current_rows_does_not_become_a_history(warehouse: Warehouse) -> None:
    warehouse.write(None, [changes((1, False))])
    with pytest.raises(WarehouseRefused, match="table t has no column valid_from, valid_to, is_current"):
        warehouse.write(None, [changes((2, False), history=True)])
