"""Queries over fixed tables, some of which Spark's analyzer refuses. Its verdicts are in `recorded/verdicts.json`."""

from __future__ import annotations

from pathlib import Path

QUERIES = Path(__file__).with_name("queries.sql")
TABLES = {
    "orders": (
        "id BIGINT, customer STRING, amount DOUBLE, price DECIMAL(12,3), quantity INT, at TIMESTAMP, day DATE, "
        "is_paid BOOLEAN, tags ARRAY<STRING>, lines ARRAY<STRUCT<sku: STRING, count: INT>>, "
        "address STRUCT<city: STRING, zip: INT, geo: STRUCT<lat: DOUBLE, lon: DOUBLE>>, "
        "attributes MAP<STRING, STRING>, payload BINARY, weight FLOAT, small SMALLINT"
    ),
    "customers": (
        "id BIGINT, name STRING, since DATE, score FLOAT, address STRUCT<city: STRING, zip: INT>, tags ARRAY<INT>"
    ),
    "rates": "currency STRING, rate DOUBLE, at TIMESTAMP",
}


def hand_written() -> list[str]:
    """A query in each line."""
    return QUERIES.read_text(encoding="utf-8").splitlines()
