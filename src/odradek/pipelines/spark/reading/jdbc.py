"""Reads database tables with Spark's JDBC reader; drivers are fetched once, like the Kafka connector."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql import types as T  # noqa: N812 - its usual name

from odradek.pipelines.spark.frames import quoted
from odradek.pipelines.spark.sessions.failures import PipelineError
from odradek.pipelines.spark.sessions.jars import POSTGRESQL, SQLITE, driver_jar

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession

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


def read_jdbc(session: SparkSession, origin: JdbcOrigin, url: str) -> DataFrame:
    """Reads a table or the result of a query. With `options: {driver: …}` the user provides the jar in `spark.jars`."""
    table = {"dbtable": origin.table} if origin.table is not None else {"query": origin.query or ""}
    options = {"url": url, **table, **driver_options(session, origin, url), **origin.options}
    reader = session.read.format("jdbc").options(**options)
    try:
        frame = reader.load()
        return of_sqlite(reader, frame.schema, custom_schema(origin)) if database_kind(url) == "sqlite" else frame
    except Exception as error:
        if "No suitable driver" not in str(error):
            raise
        advice = "name its jar in spark: {spark.jars: …} and its class in options: {driver: …} of the source"
        raise PipelineError(f"there is no JDBC driver for {database_kind(url)}: {advice}") from None


def custom_schema(origin: JdbcOrigin) -> str:
    """The types that the user gives to columns; empty if there are none. Spark ignores the case of options."""
    written = (value for name, value in origin.options.items() if name.lower() == CUSTOM_SCHEMA.lower())
    return next(written, "").strip()


def of_sqlite(reader: DataFrameReader, declared: T.StructType, custom: str) -> DataFrame:
    """The rows of a SQLite table, whose integers have 64 bits; columns with a type that the user chose are as they are.

    The driver would read INTEGER as 32 bits without an error, take DATETIME for a date and microseconds for
    milliseconds, and fail for a null in a BIGINT."""
    chosen = {name.lower() for name in cast("T.StructType", T.StructType.fromDDL(custom)).names} if custom else set()
    others = [each for each in declared.fields if each.name.lower() not in chosen]
    times = [each for each in others if isinstance(each.dataType, T.DateType | T.TimestampType)]
    types = [f"{quoted(each.name)} BIGINT" for each in others if "INT" in declared_type(each)]
    types += [f"{quoted(each.name)} STRING" for each in times]
    rows = reader.option(CUSTOM_SCHEMA, ", ".join([custom, *types] if custom else types)).load()
    return rows.withColumns({each.name: time_of(each) for each in times})


def declared_type(field: T.StructField) -> str:
    return str(field.metadata.get("jdbcClientType", "")).upper()


def time_of(field: T.StructField) -> Column:
    column = F.col(quoted(field.name))
    wanted = "date" if isinstance(field.dataType, T.DateType) and declared_type(field) == "DATE" else "timestamp"
    is_number = column.rlike("^-?[0-9]+$")  # milliseconds since 1970, as the driver stores times
    return F.when(is_number, F.timestamp_millis(column.cast("bigint")).cast(wanted)).otherwise(column.cast(wanted))


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
