"""Checks that Spark has a library and a catalog for the lakehouse tables of a pipeline."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.pipelines.definition.graph import place_of
from odradek.pipelines.definition.model import LakehouseTarget
from odradek.pipelines.definition.spark_version import LAKEHOUSE_HINT, lakehouse_refusal
from odradek.pipelines.definition.vocabulary import LakehouseFormat

if TYPE_CHECKING:
    from odradek.pipelines.definition.model import Pipeline, Sink
    from odradek.pipelines.definition.places import Problems

OWN_JARS = ("spark.jars", "spark.jars.packages")
CATALOG = "spark.sql.catalog"


def check_lakehouse(pipeline: Pipeline, problems: Problems) -> None:
    for sink in pipeline.sinks:
        if isinstance(sink.target, LakehouseTarget):
            refusal = None if has_own_jars(pipeline) else lakehouse_refusal(sink.target.format)
            if refusal is not None:
                problems.error(place_of(sink, "lakehouse", "format"), f"sink '{sink.name}': {refusal}", LAKEHOUSE_HINT)
            if sink.target.format is LakehouseFormat.ICEBERG and sink.target.table is not None:
                check_catalog(sink, sink.target.table, pipeline, problems)


def has_own_jars(pipeline: Pipeline) -> bool:
    """Whether the definition names libraries itself, which are then used as they are."""
    return any(each in pipeline.spark for each in OWN_JARS)


def check_catalog(sink: Sink, table: str, pipeline: Pipeline, problems: Problems) -> None:
    catalog, dot, _ = table.partition(".")
    if not dot or f"{CATALOG}.{catalog}" not in pipeline.spark:
        named = f"the catalog '{catalog}' of sink '{sink.name}' is not declared" if dot else ""
        problems.error(
            place_of(sink, "lakehouse", "table"),
            named or f"sink '{sink.name}' names the Iceberg table '{table}' without its catalog",
            f"write table: lake.schema.name, and spark: {{{CATALOG}.lake: org.apache.iceberg.spark.SparkCatalog, "
            f"{CATALOG}.lake.type: hadoop, {CATALOG}.lake.warehouse: FOLDER}}",
        )
