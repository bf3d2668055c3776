"""Decodes Avro values on Spark's workers. Spark's Avro reader is a separate package, and does not say why a record is
unreadable."""

from __future__ import annotations

import functools
import io
import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql.pandas.functions import pandas_udf

from odradek.pipelines.definition.avro import HEADER_BYTES, MAGIC, record_reader
from odradek.pipelines.spark.frames import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import DataFrame

    from odradek.pipelines.definition.model import RecordSchema

    Decoded = tuple[dict[str, Any] | None, str | None]  # the record, or None and the reason


MOST_SCHEMAS = 1000
LONGEST_REASON = 200
NOT_AVRO = "not Avro of this schema"


@dataclass(frozen=True, slots=True)
class AvroFormat:
    """How values are written: with the schema of their id if there are `writers`, otherwise with that of the reader."""

    reader: str
    writers: Mapping[int, str] | None = None

    def decode(self, value: bytes | None) -> Decoded:
        if value is None or (isinstance(value, float) and math.isnan(value)):
            return None, "no value"
        if self.writers is None:
            return decode_with(self.reader, self.reader, value)
        if value[:1] != MAGIC or len(value) < HEADER_BYTES:
            return None, "no schema id: the value does not start with a zero byte and the id of its writer's schema"
        schema_id = int.from_bytes(value[1:HEADER_BYTES])
        writer = self.writers.get(schema_id)
        if writer is None:
            known = ", ".join(map(str, sorted(self.writers)))
            advice = f"{schema_id}, not among {known}; add its schema to writer_schemas of the source"
            return None, f"unknown schema id: {advice}"[:LONGEST_REASON]
        record, reason = decode_with(writer, self.reader, value[HEADER_BYTES:])
        named = f"{NOT_AVRO}: schema id {schema_id}:"
        return record, None if reason is None else reason.replace(f"{NOT_AVRO}:", named, 1)[:LONGEST_REASON]


def decode_with(writer: str, reader: str, value: bytes) -> Decoded:
    """Decodes a value without a header."""
    stream = io.BytesIO(value)
    try:
        record = compiled(writer, reader)(stream)
    except Exception as error:  # fastavro lets exceptions of many types escape for invalid bytes
        return None, f"{NOT_AVRO}: {type(error).__name__} {error}"[:LONGEST_REASON]
    if stream.read(1):
        return None, f"{NOT_AVRO}: trailing bytes after the record"
    return record, None


@functools.lru_cache(maxsize=MOST_SCHEMAS)
def compiled(writer: str, reader: str) -> Callable[[io.BytesIO], dict[str, Any]]:
    """The reader of records, compiled once per worker process."""
    return record_reader(json.loads(writer), json.loads(reader))


def decode_avro(raw: DataFrame, schema: RecordSchema, parsed: str, rejected: str) -> DataFrame:
    """Adds the decoded struct, or null and the reason why the value could not be decoded."""
    columns = ", ".join(f"{quoted(each.name)}: {each.type.ddl}" for each in schema.columns)
    decode = pandas_udf(avro_decoder(format_of(schema)), f"record STRUCT<{columns}>, reason STRING")  # type: ignore[call-overload]  # the types of PySpark omit functions whose hints are made at run time
    return (
        raw.withColumn("__decoded", decode(F.col("value")))
        .withColumn(parsed, F.col("__decoded.record"))
        .withColumn(rejected, F.col("__decoded.reason"))
        .drop("__decoded")
    )


def format_of(schema: RecordSchema) -> AvroFormat:
    if schema.avro is None:
        raise ValueError("format: avro needs an Avro schema")
    return AvroFormat(schema.avro, schema.writers)


def avro_decoder(how: AvroFormat) -> Any:
    def decode(values: pd.Series) -> pd.DataFrame:
        outcomes = [how.decode(value) for value in values]
        return pd.DataFrame({"record": [each[0] for each in outcomes], "reason": [each[1] for each in outcomes]})

    decode.__annotations__ = {"values": pd.Series, "return": pd.DataFrame}
    return decode
