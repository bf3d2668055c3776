"""Answers queries without Spark: a database runs those of its own tables as they are, in its own SQL, read only."""

from __future__ import annotations

import math
from base64 import b64encode
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from odradek.pipelines.spark.writing.databases import parsed_url, reading

if TYPE_CHECKING:
    from collections.abc import Callable

DIALECTS = {"sqlite": "sqlite", "postgresql": "postgres"}  # sqlglot's
READ_ONLY = {"sqlite": "PRAGMA query_only = ON", "postgresql": "SET TRANSACTION READ ONLY"}


class NeedsSpark(Exception):
    """Why no database can answer a query."""


@dataclass(frozen=True, slots=True)
class SmallAnswer:
    """Column names, and rows of JSON values."""

    names: list[str]
    rows: list[list[Any]]


def tables_of(text: str, url: str) -> list[str]:
    """The tables that a query reads in the SQL of a database; raises `NeedsSpark` if it is not one query there."""
    import sqlglot  # noqa: PLC0415 - the import takes 0.2 s
    from sqlglot import exp  # noqa: PLC0415
    from sqlglot.errors import SqlglotError  # noqa: PLC0415

    kind = parsed_url(url).get_backend_name()
    try:
        (query,) = sqlglot.parse(text, read=DIALECTS[kind])
    except (SqlglotError, ValueError):  # ValueError: several statements
        raise NeedsSpark(f"it is not one query of {kind}") from None
    if not isinstance(query, exp.Query):
        raise NeedsSpark("it is not a query")
    own = {each.alias.lower() for each in query.find_all(exp.CTE)}
    return [each.name for each in query.find_all(exp.Table) if each.name.lower() not in own]


def answer_by_database(text: str, url: str) -> SmallAnswer:
    with reading(url) as connection:
        connection.exec_driver_sql(READ_ONLY[connection.dialect.name])
        found = connection.execution_options(no_parameters=True).exec_driver_sql(text)
        return SmallAnswer(list(found.keys()), [[json_value(value) for value in row] for row in found])


def json_value(value: Any) -> Any:
    """A value as JSON: numbers as numbers, timestamps in UTC with milliseconds, special numbers and others as text."""
    if isinstance(value, datetime):
        zoned = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
        return zoned.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    convert = next((made for kind, made in CONVERSIONS if isinstance(value, kind)), str)
    return convert(value)


def plain(value: Any) -> Any:
    return value


def number(value: Decimal) -> Any:
    return int(value) if value == value.to_integral_value() else float(value)


def base64_text(value: bytes | memoryview) -> str:
    return b64encode(bytes(value)).decode()


CONVERSIONS: tuple[tuple[Any, Callable[[Any], Any]], ...] = (
    ((str, int, float, type(None)), plain),
    (Decimal, number),
    ((bytes, memoryview), base64_text),
    (list, lambda values: [json_value(each) for each in values]),
    (dict, lambda values: {name: json_value(each) for name, each in values.items()}),
)
