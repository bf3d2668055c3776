"""Which connector a session has: Spark's own, or the Python source where the jars could not be had."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.pipelines.definition.vocabulary import Connector
from odradek.pipelines.spark.connector import ConnectorMissing, connector_jars

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

CHOICE = "spark.odradek.connector"  # among the session's settings


def choose_connector(
    wanted: Connector | None, spark_version: str, say: Callable[[str], None]
) -> tuple[Connector, list[str]]:
    """The connector and its jars. Where nothing was asked for and there are no jars, the Python source serves."""
    if wanted is Connector.PYTHON:
        return Connector.PYTHON, []
    try:
        return Connector.JVM, connector_jars(spark_version, say)
    except ConnectorMissing as error:
        if wanted is Connector.JVM:
            raise
        say(f"{error}; topics are read and written by the Python source instead, which takes more of the processor")
        return Connector.PYTHON, []


def connector_of(session: SparkSession, wanted: Connector | None) -> Connector:
    """What a pipeline asks for, or else what the session was started with."""
    return wanted or Connector(session.conf.get(CHOICE, None) or Connector.JVM)
