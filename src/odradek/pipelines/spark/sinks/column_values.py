"""Types and values of Spark's columns in SQL databases."""

from __future__ import annotations

import json
from datetime import UTC
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from pyspark.sql import types as T  # noqa: N812 - its usual name

if TYPE_CHECKING:
    from collections.abc import Callable


def column_type(kind: T.DataType) -> Any:
    """The SQL type of a Spark type; types without an equivalent are stored as JSON."""
    if isinstance(kind, T.DecimalType):
        return sa.Numeric(kind.precision, kind.scale)
    simple: tuple[tuple[type[T.DataType], Any], ...] = (
        (T.BooleanType, sa.Boolean()),
        (T.LongType, sa.BigInteger()),
        (T.IntegralType, sa.Integer()),
        (T.FractionalType, sa.Double()),
        (T.TimestampType, sa.DateTime(timezone=True)),
        (T.TimestampNTZType, sa.DateTime()),
        (T.DateType, sa.Date()),
        (T.BinaryType, sa.LargeBinary()),
    )
    return next((chosen for known, chosen in simple if isinstance(kind, known)), sa.Text())


def loses_values(present: Any, wanted: Any, dialect: str) -> bool:
    """Whether a column of the database would round numbers, or remove the time of timestamps, without an error."""
    if isinstance(present, sa.Integer) and isinstance(wanted, sa.Float):
        return dialect != "sqlite"  # which stores 1.5 in a column of integers as it is
    if isinstance(present, sa.Integer):
        return isinstance(wanted, sa.Numeric) and wanted.scale != 0
    return isinstance(present, sa.Date) and isinstance(wanted, sa.DateTime)


def value_of(kind: T.DataType, dialect: str) -> Callable[[Any], Any]:
    """The conversion of a type's values for the database; Spark returns timestamps in the machine's time zone."""
    if isinstance(kind, T.TimestampType):
        return lambda value: None if value is None else value.astimezone(UTC)
    if isinstance(kind, T.BinaryType):
        return lambda value: None if value is None else bytes(value)
    if isinstance(kind, T.StringType) and dialect == "postgresql":
        # PostgreSQL does not store NUL in text.
        return lambda value: None if value is None else value.replace("\0", "\ufffd")
    if isinstance(kind, T.AtomicType | T.NullType):
        return lambda value: value
    return lambda value: None if value is None else json.dumps(value, default=str)
