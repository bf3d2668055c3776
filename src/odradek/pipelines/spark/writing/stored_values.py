"""Types and values of Spark's columns in SQL databases, and rows that a database cannot store."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql import types as T  # noqa: N812 - its usual name

from odradek.pipelines.definition.model import FilesTarget, LakehouseTarget, TableTarget
from odradek.pipelines.definition.vocabulary import Otherwise
from odradek.pipelines.planning.plan import Check, EndMode
from odradek.pipelines.spark.frames import INTERNAL, column, quoted, shows_records, visible_names
from odradek.pipelines.spark.writing.databases import database_url, parsed_url
from odradek.pipelines.sql.row_errors import expression_may_fail

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pyspark.sql import Column, DataFrame

    from odradek.pipelines.definition.model import Pipeline
    from odradek.pipelines.planning.plan import End

CANNOT_STORE = "cannot be stored"
YEARS = "a time before the year 1 or after 9999 in the column"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIRST, LAST = -62135596800000000, 253402300799999999  # microseconds since 1970 of the years that databases have
NESTED = (T.StructType, T.ArrayType, T.MapType, T.VariantType)
INTERVALS = (T.DayTimeIntervalType, T.YearMonthIntervalType, T.CalendarIntervalType)
JSON_OPTIONS = {"ignoreNullFields": "false"}
EXACT_DIGITS = 15  # of a floating-point number


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


def columns_of(fields: Iterable[T.StructField], key: tuple[str, ...]) -> list[sa.Column[Any]]:
    return [sa.Column(each.name, column_type(each.dataType), primary_key=each.name in key) for each in fields]


def loses_values(present: Any, wanted: Any, dialect: str) -> bool:
    """Whether a column of the database would round numbers, or remove the time of timestamps, without an error."""
    if isinstance(present, sa.Integer) and isinstance(wanted, sa.Float):
        return dialect != "sqlite"  # which stores 1.5 in a column of integers as it is
    if isinstance(present, sa.Integer):
        return isinstance(wanted, sa.Numeric) and wanted.scale != 0
    return isinstance(present, sa.Date) and isinstance(wanted, sa.DateTime)


def value_of(kind: T.DataType, dialect: str) -> Callable[[Any], Any]:
    """The conversion of a type's values for the database."""
    if isinstance(kind, T.TimestampType):
        return moment_of
    if isinstance(kind, T.BinaryType):
        return lambda value: None if value is None else bytes(value)
    if isinstance(kind, T.StringType) and dialect == "postgresql":
        # PostgreSQL does not store NUL in text.
        return lambda value: None if value is None else value.replace("\0", "\ufffd")
    if isinstance(kind, T.AtomicType | T.NullType):
        return lambda value: value
    return lambda value: None if value is None else json.dumps(value, default=str)


def moment_of(value: datetime | int | None) -> datetime | None:
    """A time from microseconds since 1970, or as Spark returns it, in the machine's time zone, which does not have all
    times of the years 1 and 9999."""
    if isinstance(value, int):
        return EPOCH + timedelta(microseconds=value)
    return None if value is None else value.astimezone(UTC)


def as_stored(frame: DataFrame, names: Sequence[str], dialect: str) -> tuple[DataFrame, T.StructType]:
    """These columns with the values that the database compares, and the types of its columns.

    Structs, arrays and maps are JSON, intervals and times of day are text, times are microseconds since 1970, NaN is
    null. SQLite stores decimals as floating-point numbers."""
    fields = [frame.schema[name] for name in names]
    values = [_stored_value(each, dialect).alias(each.name) for each in fields]
    internal = [name for name in INTERNAL if name in frame.columns]
    types = [T.StringType() if _is_text(each.dataType) else each.dataType for each in fields]
    schema = T.StructType([T.StructField(each.name, kind) for each, kind in zip(fields, types, strict=True)])
    return frame.select(*values, *internal), schema


def _is_text(kind: T.DataType) -> bool:
    """Whether values are stored as text; times of day by their name, because only some releases have their class."""
    return isinstance(kind, NESTED + INTERVALS) or kind.typeName() == "time"


def _stored_value(field: T.StructField, dialect: str) -> Column:
    value, kind = column(field.name), field.dataType
    if isinstance(kind, NESTED):
        return F.to_json(_with_sorted_maps(value, kind), JSON_OPTIONS)
    if _is_text(kind):
        return value.cast("string")
    if isinstance(kind, T.TimestampType):
        return F.unix_micros(value)
    if isinstance(kind, T.FloatType | T.DoubleType):
        return F.when(value == 0, F.lit(0).cast(kind)).when(~F.isnan(value), value)
    if isinstance(kind, T.DecimalType) and dialect == "sqlite" and kind.precision > EXACT_DIGITS:
        return value.cast("double")
    return value


def _with_sorted_maps(value: Column, kind: T.DataType) -> Column:
    """The value with the entries of its maps in the order of their keys, so that equal maps have one JSON."""
    if not _has_maps(kind):
        return value
    if isinstance(kind, T.StructType):
        fields = [_with_sorted_maps(value.getField(each.name), each.dataType).alias(each.name) for each in kind.fields]
        return F.when(value.isNotNull(), F.struct(*fields))
    if isinstance(kind, T.ArrayType):
        return F.transform(value, lambda each: _with_sorted_maps(each, kind.elementType))
    assert isinstance(kind, T.MapType)
    keys = F.array_sort(F.map_keys(value))
    entries = [keys, F.transform(keys, lambda each: _with_sorted_maps(value[each], kind.valueType))]
    return F.map_from_arrays(*entries)


def _has_maps(kind: T.DataType) -> bool:
    if isinstance(kind, T.StructType):
        return any(_has_maps(each.dataType) for each in kind.fields)
    return isinstance(kind, T.MapType) or (isinstance(kind, T.ArrayType) and _has_maps(kind.elementType))


def written_names(end: End, names: Sequence[str], *, shows_records: bool) -> list[str]:
    """The columns that an end writes: those of the rows, and those of the record that its definition names."""
    shown, spelled = visible_names(names, shows_records=shows_records), {each.lower(): each for each in names}
    by_folder = end.target.partition_by if isinstance(end.target, FilesTarget | LakehouseTarget) else ()
    named = [spelled[each.lower()] for each in (*end.key, *end.order_by, *by_folder)]
    return list(dict.fromkeys((*shown, *named)))


def shown_names(frame: DataFrame, end: End) -> list[str]:
    return written_names(end, frame.columns, shows_records=shows_records(frame))


def check_of_end(pipeline: Pipeline, end: End, schema: T.StructType, *, shows_records: bool) -> Check | None:
    """The check of the rows in front of an end with these columns, if it is a table."""
    if not isinstance(end.target, TableTarget | LakehouseTarget):
        return None
    database = dialect_of(pipeline, end.target) if isinstance(end.target, TableTarget) else ""
    names = written_names(end, schema.names, shows_records=shows_records)
    return unstorable(end, T.StructType([schema[name] for name in names]), database)


def dialect_of(pipeline: Pipeline, target: TableTarget) -> str:
    """The name of a table's database: sqlite or postgresql."""
    return parsed_url(database_url(pipeline, target.url)).get_backend_name()


def unstorable(end: End, schema: T.StructType, database: str) -> Check | None:
    """The check of rows that a table cannot store; None if it can store all. `database` is the name of SQLAlchemy's
    dialect, empty for tables of the lakehouse."""
    spelled = {each.name.lower(): each.name for each in schema.fields}
    required = [spelled[name.lower()] for name in _required(end)]
    found = [(f"{quoted(name)} is not null", f"null in the key column {name}") for name in required]
    for each in schema.fields if database else ():
        name = quoted(each.name)
        if isinstance(each.dataType, T.TimestampType):
            found.append((f"{name} is null or unix_micros({name}) between {FIRST} and {LAST}", f"{YEARS} {each.name}"))
        elif isinstance(each.dataType, T.DateType | T.TimestampNTZType):
            found.append((f"{name} is null or year({name}) between 1 and 9999", f"{YEARS} {each.name}"))
        elif isinstance(each.dataType, T.StringType) and database == "postgresql":
            condition = f"{name} is null or not contains({name}, chr(0))"
            found.append((condition, f"a character of code 0 in the column {each.name}"))
    changes = end.target.changes if isinstance(end.target, TableTarget) else None
    if changes is not None and changes.deletes is not None and expression_may_fail(changes.deletes, None):
        # True for all values, which Spark does not see: it must compute them.
        condition = f"coalesce({changes.deletes}, false) in (true, false)"
        found.append((condition, f"{changes.deletes} cannot be computed"))
    if not found:
        return None
    condition = " and ".join(f"({each})" for each, _ in found)
    reason = f"{CANNOT_STORE}: {', or '.join(each for _, each in found)}"
    return Check(CANNOT_STORE, condition, Otherwise.QUARANTINE, reason, is_implicit=True)


def _required(end: End) -> list[str]:
    """The columns that may not be null: the key, and the sequence of change data."""
    sequence = end.order_by if end.mode is EndMode.CHANGES else ()
    return list(dict.fromkeys((*end.key, *sequence)))
