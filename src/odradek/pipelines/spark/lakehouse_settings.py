"""The settings of Spark for Delta and Iceberg tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.pipelines.definition.checks import OWN_JARS
from odradek.pipelines.definition.model import LakehouseTarget
from odradek.pipelines.definition.vocabulary import LakehouseFormat
from odradek.pipelines.spark.sessions.jars import lakehouse_jars

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.pipelines.definition.model import Pipeline

EXTENSIONS = {
    LakehouseFormat.DELTA: "io.delta.sql.DeltaSparkSessionExtension",
    LakehouseFormat.ICEBERG: "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
}
EXTENSIONS_KEY = "spark.sql.extensions"
CATALOG_KEY = "spark.sql.catalog.spark_catalog"
DELTA_CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"


def lakehouse_settings(pipeline: Pipeline, say: Callable[[str], None]) -> dict[str, str]:
    """The Spark settings of a pipeline with those that its lakehouse tables need; fetches the libraries."""
    formats = sorted({each.target.format for each in pipeline.sinks if isinstance(each.target, LakehouseTarget)})
    settings = dict(pipeline.spark)
    if not formats:
        return settings
    present = [each for each in settings.get(EXTENSIONS_KEY, "").split(",") if each]
    settings[EXTENSIONS_KEY] = ",".join(dict.fromkeys([*present, *(EXTENSIONS[each] for each in formats)]))
    if LakehouseFormat.DELTA in formats:
        settings.setdefault(CATALOG_KEY, DELTA_CATALOG)
    if not any(each in pipeline.spark for each in OWN_JARS):
        settings["spark.jars"] = ",".join(jar for each in formats for jar in lakehouse_jars(each, say))
    return settings
