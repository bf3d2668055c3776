"""Tables of databases as rows, by Spark's JDBC reader: its drivers are fetched once, as the Kafka connector is."""

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
    """A class that speaks to one kind of database, and the jar that holds it."""

    name: str
    jar: Jar


DRIVERS = {
    "postgresql": Driver("org.postgresql.Driver", Jar("org.postgresql", "postgresql", "42.7.8")),
    "sqlite": Driver("org.sqlite.JDBC", Jar("org.xerial", "sqlite-jdbc", "3.50.3.0")),
}


class DriverMissing(PipelineError):
    """A database whose driver is not there and cannot be fetched."""


def read_jdbc(session: SparkSession, origin: JdbcOrigin, url: str) -> DataFrame:
    """A table or the result of a query. Whoever names a driver of their own brings its jar in `spark.jars`, too."""
    table = {"dbtable": origin.table} if origin.table is not None else {"query": origin.query or ""}
    options = {"url": url, **table, **origin.options}
    driver = DRIVERS.get(database_kind(url))
    if driver is not None and "driver" not in options:
        session.sql(f"ADD JAR '{driver_jar(driver)}'")
        options["driver"] = driver.name
    try:
        return session.read.format("jdbc").options(**options).load()
    except Exception as error:
        if "No suitable driver" not in str(error):
            raise
        advice = "put its jar into spark: {spark.jars: …}, and its class into options: {driver: …} of the source"
        raise DriverMissing(f"there is no JDBC driver for {database_kind(url)}: {advice}") from None


def database_kind(url: str) -> str:
    """`postgresql` of `jdbc:postgresql://…`."""
    return url.removeprefix("jdbc:").partition(":")[0].lower()


def driver_jar(driver: Driver) -> Path:
    """The path of the jar; fetched when it is not there yet."""
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
    reasons = ["neither mvn nor java is on the path"]
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
    advice = f"fetch {driver.jar} by hand, and name it in spark.jars with options: {{driver: {driver.name}}}"
    raise DriverMissing(f"the JDBC driver {driver.name} cannot be fetched: {reasons[-1]}; {advice}")
