"""Reads rows of the pipeline's views and tables from its warehouse for the panels of a live view."""

from __future__ import annotations

import importlib.util
import time
from typing import TYPE_CHECKING, Any

from odradek.examples.live_view.definition import Rows

if TYPE_CHECKING:
    from sqlalchemy import ColumnClause, Engine

    from odradek.examples.live_view.model import LiveViewModel

READ_EVERY_S = 2.0
MOST_ROWS = 60


class WarehouseReader:
    """Reads at intervals. A view that does not exist, or a warehouse that does not answer, is tried again later."""

    def __init__(self, url: str | None, model: LiveViewModel) -> None:
        self._model = model
        self._panels = [(panel.title, panel.content) for panel in model.view.panels if isinstance(panel.content, Rows)]
        self._read_at = float("-inf")
        self._engine: Engine | None = None
        if url is None or not self._panels or importlib.util.find_spec("sqlalchemy") is None:
            return
        from sqlalchemy import create_engine  # noqa: PLC0415 - an optional package

        self._engine = create_engine(url, connect_args={"timeout": 1} if url.startswith("sqlite") else {})

    def close(self) -> None:
        if self._engine is not None:
            self._engine.dispose()

    def poll(self) -> None:
        now = time.monotonic()
        if self._engine is None or now - self._read_at < READ_EVERY_S:
            return
        self._read_at = now
        for title, rows in self._panels:
            self._read(self._engine, title, rows)

    def _read(self, engine: Engine, title: str, rows: Rows) -> None:
        from sqlalchemy import column, desc, select, table  # noqa: PLC0415 - an optional package
        from sqlalchemy.exc import SQLAlchemyError  # noqa: PLC0415

        columns: list[ColumnClause[Any]] = [column(name) for _title, name in rows.columns]
        query = select(*columns).select_from(table(rows.view)).limit(MOST_ROWS)
        if rows.order_by is not None:
            by: ColumnClause[Any] = column(rows.order_by)
            query = query.order_by(desc(by) if rows.is_descending else by)
        try:
            with engine.connect() as connection:
                self._model.rows[title] = [tuple(row) for row in connection.execute(query)]
        except SQLAlchemyError:
            self._model.rows.setdefault(title, None)
