"""Chooses the connector of a session: Spark's own, or the Python source if the jars are not available."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.pipelines.definition.vocabulary import Connector
from odradek.pipelines.spark.connector import ConnectorMissing, connector_jars

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

CHOICE = "spark.odradek.connector"  # the Spark setting that records the choice


def choose_connector(
    wanted: Connector | None, spark_version: str, say: Callable[[str], None]
) -> tuple[Connector, list[str]]:
    """The connector and its jars; falls back to the Python source if none was requested and the jars are missing."""
    if wanted is Connector.PYTHON:
        return Connector.PYTHON, []
    try:
        return Connector.JVM, connector_jars(spark_version, say)
    except ConnectorMissing as error:
        if wanted is Connector.JVM:
            raise
        say(f"{error}; using the Python connector instead, which needs more CPU")
        return Connector.PYTHON, []


def connector_of(session: SparkSession, wanted: Connector | None) -> Connector:
    """The connector that the pipeline requests, or the session's."""
    return wanted or Connector(session.conf.get(CHOICE, None) or Connector.JVM)
