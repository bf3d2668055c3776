"""The libraries and settings of Spark for Delta and Iceberg tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyspark

from odradek.pipelines.definition.checks_lakehouse import has_own_jars
from odradek.pipelines.definition.model import LakehouseTarget
from odradek.pipelines.definition.spark_version import LAKEHOUSE_HINT, LAKEHOUSE_LIBRARIES, lakehouse_refusal
from odradek.pipelines.definition.vocabulary import LakehouseFormat
from odradek.pipelines.spark.connector import COMPLETE, SCALA, Jar, cache_folder, fetch_set, fetchers, locked
from odradek.pipelines.spark.sessions.failures import PipelineError

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.pipelines.definition.model import Pipeline

LIBRARIES = {
    LakehouseFormat.DELTA: (
        Jar("io.delta", f"delta-spark_4.1_{SCALA}", "4.1.0"),
        Jar("io.delta", "delta-storage", "4.1.0"),
    ),
    LakehouseFormat.ICEBERG: (Jar("org.apache.iceberg", f"iceberg-spark-runtime-4.1_{SCALA}", "1.11.0"),),
}
EXTENSIONS = {
    LakehouseFormat.DELTA: "io.delta.sql.DeltaSparkSessionExtension",
    LakehouseFormat.ICEBERG: "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
}
EXTENSIONS_KEY = "spark.sql.extensions"
CATALOG_KEY = "spark.sql.catalog.spark_catalog"
DELTA_CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"


class LakehouseMissing(PipelineError):
    """This Spark has no library for the format of a lakehouse table, or it cannot be fetched."""


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
    if not has_own_jars(pipeline):
        settings["spark.jars"] = ",".join(jar for each in formats for jar in library(each, say))
    return settings


def library(wanted: LakehouseFormat, say: Callable[[str], None]) -> list[str]:
    """Paths of the jars of a format; fetches them if they are not cached."""
    refusal = lakehouse_refusal(wanted)
    if refusal is not None:
        raise LakehouseMissing(f"{refusal}; {LAKEHOUSE_HINT}")
    jars = LIBRARIES[wanted]
    folder = cache_folder() / f"{pyspark.__version__}-{wanted}-{jars[0].version}"
    if not (folder / COMPLETE).exists():
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder / "lock"):
            ways = fetchers()
            if not ways:
                raise LakehouseMissing(f"{jars[0]} cannot be fetched: neither mvn nor java is on the PATH")
            if not (folder / COMPLETE).exists():
                fetch_set(jars, folder, ways[0], say, LAKEHOUSE_LIBRARIES[wanted])
    return sorted(str(path) for path in folder.glob("*.jar"))
