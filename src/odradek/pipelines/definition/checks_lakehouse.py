"""Checks libraries and catalogs of the lakehouse tables of a pipeline, and the names of their columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.pipelines.definition.column_types import Struct, types_in
from odradek.pipelines.definition.columns import lookup
from odradek.pipelines.definition.model import LakehouseTarget, place_of
from odradek.pipelines.definition.spark_version import LAKEHOUSE_HINT, lakehouse_refusal
from odradek.pipelines.definition.vocabulary import LakehouseFormat

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.pipelines.definition.column_types import ColumnType
    from odradek.pipelines.definition.model import Pipeline, Sink
    from odradek.pipelines.definition.places import Problems
    from odradek.pipelines.definition.table_columns import Columns

OWN_JARS = ("spark.jars", "spark.jars.packages")
CATALOG = "spark.sql.catalog"
DELTA_REFUSES = frozenset(" ,;{}()\n\t=")


def check_lakehouse(pipeline: Pipeline, known: Mapping[str, Columns | None], problems: Problems) -> None:
    for sink in pipeline.sinks:
        if isinstance(sink.target, LakehouseTarget):
            refusal = None if has_own_jars(pipeline) else lakehouse_refusal(sink.target.format)
            if refusal is not None:
                problems.error(place_of(sink, "lakehouse", "format"), f"sink '{sink.name}': {refusal}", LAKEHOUSE_HINT)
            if sink.target.format is LakehouseFormat.ICEBERG and sink.target.table is not None:
                check_catalog(sink, sink.target.table, pipeline, problems)
            columns = lookup(known, sink.input)
            if sink.target.format is LakehouseFormat.DELTA and columns is not None:
                check_delta_names(sink, columns, problems)


def check_delta_names(sink: Sink, columns: Columns, problems: Problems) -> None:
    """Warns of names that Delta refuses in the first batch, unless the table exists and has column mapping."""
    names = [name for name, kind in columns.types.items() for name in (name, *field_names(kind))]
    refused = next((name for name in names if not DELTA_REFUSES.isdisjoint(name)), None)
    if refused is not None:
        problems.warning(
            place_of(sink, "lakehouse", "format"),
            f"sink '{sink.name}' writes '{refused}', a name that Delta refuses without column mapping",
            "give it a name without spaces, commas, semicolons, brackets and equal signs in a step before",
        )


def field_names(kind: ColumnType | None) -> list[str]:
    """The names of the fields of all structs in a type."""
    structs = [] if kind is None else [each for each in types_in(kind) if isinstance(each, Struct)]
    return [field.name for each in structs for field in each.fields]


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
