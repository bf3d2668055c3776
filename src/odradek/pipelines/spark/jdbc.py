"""Reads database tables with Spark's JDBC reader; drivers are fetched once, like the Kafka connector."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from odradek.pipelines.spark.connector import ConnectorMissing, Jar, cache_folder, fetchers, locked
from odradek.pipelines.spark.failures import PipelineError

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from odradek.pipelines.definition.model import JdbcOrigin


@dataclass(frozen=True, slots=True)
class Driver:
    """A JDBC driver class for one kind of database, and its jar."""

    name: str
    jar: Jar


DRIVERS = {
    "postgresql": Driver("org.postgresql.Driver", Jar("org.postgresql", "postgresql", "42.7.8")),
    "sqlite": Driver("org.sqlite.JDBC", Jar("org.xerial", "sqlite-jdbc", "3.50.3.0")),
}


class DriverMissing(PipelineError):
    """A JDBC driver is missing and cannot be fetched."""


def read_jdbc(session: SparkSession, origin: JdbcOrigin, url: str) -> DataFrame:
    """Reads a table or the result of a query. With `options: {driver: …}` the user provides the jar in `spark.jars`."""
    table = {"dbtable": origin.table} if origin.table is not None else {"query": origin.query or ""}
    options = {"url": url, **table, **driver_options(session, origin, url), **origin.options}
    try:
        return session.read.format("jdbc").options(**options).load()
    except Exception as error:
        if "No suitable driver" not in str(error):
            raise
        advice = "name its jar in spark: {spark.jars: …} and its class in options: {driver: …} of the source"
        raise DriverMissing(f"there is no JDBC driver for {database_kind(url)}: {advice}") from None


def driver_options(session: SparkSession, origin: JdbcOrigin, url: str) -> dict[str, str]:
    """The driver of the URL's kind of database, which the session can load from now on."""
    driver = DRIVERS.get(database_kind(url))
    if driver is None or "driver" in origin.options:
        return {}
    session.sql(f"ADD JAR '{driver_jar(driver)}'")
    return {"driver": driver.name}


def database_kind(url: str) -> str:
    """`postgresql` of `jdbc:postgresql://…`."""
    return url.removeprefix("jdbc:").partition(":")[0].lower()


def driver_jar(driver: Driver) -> Path:
    """The path of the jar; fetches it if it is not cached."""
    folder = cache_folder() / "jdbc"
    path = folder / driver.jar.file
    if path.exists():
        return path
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder / "lock"):
        if not path.exists():
            fetch_driver(driver, folder)
    return path


def fetch_driver(driver: Driver, folder: Path) -> None:
    reasons = ["neither mvn nor java is on the PATH"]
    for way in fetchers():
        unfinished = folder / "fetching"
        unfinished.mkdir(exist_ok=True)
        try:
            way(driver.jar, unfinished)
            (unfinished / driver.jar.file).replace(folder / driver.jar.file)
        except (ConnectorMissing, FileNotFoundError) as error:
            reasons.append(str(error))
        else:
            return
    advice = f"download {driver.jar}, and name it in spark.jars with options: {{driver: {driver.name}}}"
    raise DriverMissing(f"the JDBC driver {driver.name} cannot be fetched: {reasons[-1]}; {advice}")
