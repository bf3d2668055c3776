"""SQL over known tables: hand-written queries, and those of drawn definitions."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from odradek.pipelines.definition.ddl import parse_ddl
from odradek.pipelines.sql.blocks import Part, blocks_of
from odradek.pipelines.sql.columns import Columns
from odradek.pipelines.sql.query import Query
from tests.pipelines.generated.drawing import case_of

if TYPE_CHECKING:
    from collections.abc import Iterator

QUERIES = Path(__file__).with_name("queries.sql")
SEEDS = range(20)
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
UNREADABLE = (" intersect ", " except select", "with t(a, b)")


def hand_written() -> list[str]:
    """A query in each line."""
    return QUERIES.read_text(encoding="utf-8").splitlines()


def columns_of(table: str) -> Columns | None:
    ddl = TABLES.get(table)
    return None if ddl is None else Columns({each.name: each.type for each in parse_ddl(ddl)})


def read(sql: str, **tables: str) -> Query:
    """The last SELECT of a query. Tables are given as DDL; those of the corpus are known."""
    known = {name: Columns({each.name: each.type for each in parse_ddl(ddl)}) for name, ddl in tables.items()}
    return Query(blocks_of("step", sql)[-1].parts[0], lambda name: known.get(name) or columns_of(name))


@functools.cache
def queries() -> tuple[str, ...]:
    """The queries that can be read."""
    written = [each for each in hand_written() if not any(word in each for word in UNREADABLE)]
    return tuple(dict.fromkeys((*written, *drawn())))


def drawn() -> Iterator[str]:
    for seed in SEEDS:
        definition = yaml.safe_load(case_of(seed).text)
        yield from (step["sql"] for step in definition.get("steps", {}).values() if "sql" in step)


def parts() -> list[Part]:
    return [part for sql in queries() for block in blocks_of("step", sql) for part in block.parts]
