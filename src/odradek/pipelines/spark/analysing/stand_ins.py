"""Empty frames in place of sources and of tables: Spark analyses what reads them before anything is there to read."""

from __future__ import annotations

import tempfile
from functools import cache
from typing import TYPE_CHECKING

from odradek.pipelines.definition.model import TopicOrigin
from odradek.pipelines.definition.vocabulary import Encoding
from odradek.pipelines.spark.computing.frames import REJECTED, quoted
from odradek.pipelines.spark.reading.record_files import RECORD_DDL
from odradek.pipelines.spark.reading.records import PARSED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from odradek.pipelines.definition.column_types import Column
    from odradek.pipelines.definition.model import Source

TEXT, BYTES = "STRUCT<value: STRING>", "STRUCT<`_`: INT>"  # what `records.decoded` parses of records without a schema


def stand_in(session: SparkSession, schema: StructType | str, *, is_stream: bool) -> DataFrame:
    """A frame without rows. Event time is metadata of a schema, so that a stand-in of a table has it as well."""
    reader = session.readStream.schema(schema) if is_stream else session.read.schema(schema)
    return reader.json(_empty_folder())


def source_stand_in(session: SparkSession, source: Source, load: Callable[[Source], DataFrame]) -> DataFrame:
    """A source without rows. A topic has the columns of its records and the parsed ones, because Spark would analyse
    the text of a format again for each flow. A static table whose columns are not declared is asked for them."""
    schema = source.format.schema
    if isinstance(source.origin, TopicOrigin):
        parsed = TEXT if source.format.encoding is Encoding.TEXT else BYTES
        parsed = parsed if schema is None else f"STRUCT<{_ddl(schema.columns, ': ')}>"
        ddl = f"{RECORD_DDL}, {PARSED} {parsed}, {REJECTED} STRING"
        return stand_in(session, ddl, is_stream=source.is_stream)
    if schema is not None:
        return stand_in(session, _ddl(schema.columns, " "), is_stream=source.is_stream)
    return stand_in(session, load(source).schema, is_stream=source.is_stream)


def _ddl(columns: Iterable[Column], separator: str) -> str:
    """The columns, each of which may be null, as those of a record that is not parsed are."""
    return ", ".join(f"{quoted(each.name)}{separator}{each.type.ddl}" for each in columns)


@cache
def _empty_folder() -> str:
    return tempfile.mkdtemp(prefix="odradek-empty-")
