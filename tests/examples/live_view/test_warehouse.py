"""Rows of a pipeline's views for the live view, from a database that may not have them yet."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

import pytest

from odradek.examples.live_view import warehouse
from odradek.examples.live_view.warehouse import MOST_ROWS, WarehouseReader
from tests.examples.live_view.seen import rigs_model

if TYPE_CHECKING:
    from pathlib import Path

PANEL = "pumps by pressure"


def test_rows_come_in_their_order_once_the_view_exists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warehouse, "READ_EVERY_S", 0.0)
    file, model = tmp_path / "w.db", rigs_model()
    reader = WarehouseReader(f"sqlite:///{file}", model)
    reader.poll()
    assert model.rows[PANEL] is None
    with sqlite3.connect(file) as database:
        database.execute("create table pump_state (hcid, pressure, temperature, production)")
        rows = [(pump, 100.0 + pump, 30.0, 50.0) for pump in range(MOST_ROWS + 5)]
        database.executemany("insert into pump_state values (?, ?, ?, ?)", rows)
    database.close()
    reader.poll()
    found = model.rows[PANEL]
    assert found is not None
    assert list(found) == list(reversed(rows))[:MOST_ROWS]
    reader.close()


@pytest.mark.parametrize("url", [None, "sqlite:////nowhere/at/all.db"])
def test_without_a_warehouse_there_are_no_rows(url: str | None) -> None:
    model = rigs_model()
    reader = WarehouseReader(url, model)
    reader.poll()
    assert model.rows[PANEL] is None
    reader.close()
