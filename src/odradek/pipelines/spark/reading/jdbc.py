"""Reads database tables with Spark's JDBC reader; drivers are fetched once, like the Kafka connector."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql import types as T  # noqa: N812 - its usual name

from odradek.pipelines.spark.computing.frames import quoted
from odradek.pipelines.spark.sessions.failures import PipelineError
from odradek.pipelines.spark.sessions.jars import POSTGRESQL, SQLITE, driver_jar

if TYPE_CHECKING:
    from collections.abc import Collection

    from pyspark.sql import Column, DataFrame, SparkSession

    from odradek.pipelines.definition.model import JdbcOrigin
    from odradek.pipelines.spark.sessions.jars import Jar


@dataclass(frozen=True, slots=True)
class Driver:
    """A JDBC driver class for one kind of database, and its jar."""

    name: str
    jar: Jar


DRIVERS = {
    "postgresql": Driver("org.postgresql.Driver", POSTGRESQL),
    "sqlite": Driver("org.sqlite.JDBC", SQLITE),
}


CUSTOM_SCHEMA = "customSchema"


class DriverMissing(PipelineError):
    """There is no JDBC driver for a kind of database."""


def read_jdbc(session: SparkSession, origin: JdbcOrigin, url: str) -> DataFrame:
    """Reads a table or the result of a query. With `options: {driver: …}` the user provides the jar in `spark.jars`."""
    table = {"dbtable": origin.table} if origin.table is not None else {"query": origin.query or ""}
    options = {"url": url, **table, **driver_options(session, origin, url), **origin.options}
    reader = session.read.format("jdbc").options(**options)
    try:
        frame = reader.load()
        if database_kind(url) != "sqlite":
            return frame
        custom = custom_schema(origin)
        named = cast("T.StructType", T.StructType.fromDDL(custom)).names if custom else []
        chosen = {each.lower() for each in named}
        others = [each for each in frame.schema.fields if each.name.lower() not in chosen]
        stored = [f"{quoted(each.name)} {kind}" for each in others if (kind := stored_type(each))]
        types = ", ".join([custom, *stored] if custom else stored)
        return as_declared(reader.option(CUSTOM_SCHEMA, types).load(), frame.schema, chosen) if stored else frame
    except Exception as error:
        if "No suitable driver" not in str(error):
            raise
        advice = "name its jar in spark: {spark.jars: …} and its class in options: {driver: …} of the source"
        raise DriverMissing(f"there is no JDBC driver for {database_kind(url)}: {advice}") from None


def custom_schema(origin: JdbcOrigin) -> str:
    """The types that the user gives to columns; empty if there are none. Spark ignores the case of options."""
    written = (value for name, value in origin.options.items() if name.lower() == CUSTOM_SCHEMA.lower())
    return next(written, "").strip()


def stored_type(field: T.StructField) -> str | None:
    """The type as which a column of SQLite is read; None if the driver reads it as it is declared.

    The driver reads INTEGER, which has 64 bits, as 32 bits without an error, takes DATETIME for a date and microseconds
    for milliseconds, and fails for a null in a BIGINT."""
    if isinstance(field.dataType, T.ByteType | T.ShortType | T.IntegerType) or is_big_integer(field):
        return "BIGINT"
    return "STRING" if isinstance(field.dataType, T.DateType | T.TimestampType) else None


def is_big_integer(field: T.StructField) -> bool:
    return isinstance(field.dataType, T.DecimalType) and "INT" in declared_type(field)


def declared_type(field: T.StructField) -> str:
    return str(field.metadata.get("jdbcClientType", "")).upper()


def as_declared(stored: DataFrame, schema: T.StructType, chosen: Collection[str]) -> DataFrame:
    """The rows of a SQLite table with the types of its columns; those that the user chose are read as they are."""

    def value(field: T.StructField) -> Column:
        return F.col(quoted(field.name)) if field.name.lower() in chosen else declared_value(field)

    return stored.select(*(value(each).alias(each.name) for each in schema.fields))


def declared_value(field: T.StructField) -> Column:
    column, kind = F.col(quoted(field.name)), field.dataType
    if isinstance(kind, T.DateType | T.TimestampType):
        wanted = "date" if isinstance(kind, T.DateType) and declared_type(field) == "DATE" else "timestamp"
        is_number = column.rlike("^-?[0-9]+$")  # milliseconds since 1970, as the driver stores times
        return F.when(is_number, F.timestamp_millis(column.cast("bigint")).cast(wanted)).otherwise(column.cast(wanted))
    if not isinstance(kind, T.ByteType | T.ShortType | T.IntegerType):
        return column.cast(kind)
    refusal = (
        f"column {field.name}: a number has more than 32 bits; set options: {{{CUSTOM_SCHEMA}: {field.name} BIGINT}}"
    )
    fits = column.isNull() | column.between(-(2**31), 2**31 - 1)
    return F.when(fits, column.cast("int")).otherwise(F.raise_error(F.lit(refusal)))


def driver_options(session: SparkSession, origin: JdbcOrigin, url: str) -> dict[str, str]:
    """The driver of the URL's kind of database, which the session can load from now on."""
    driver = DRIVERS.get(database_kind(url))
    if driver is None or "driver" in origin.options:
        return {}
    session.sql(f"ADD JAR '{driver_jar(driver.jar)}'")
    return {"driver": driver.name}


def database_kind(url: str) -> str:
    """`postgresql` of `jdbc:postgresql://…`."""
    return url.removeprefix("jdbc:").partition(":")[0].lower()
