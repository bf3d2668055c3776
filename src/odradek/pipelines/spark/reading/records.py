"""Converts records of topics to rows: the value parsed by its format, next to the record's own fields.

No record is dropped. A value that fails to parse keeps its row, with the reason in `__rejected`; the part of the reason
before the first colon is its kind. `decoded` is the form in which a batch is cached: the original record and the parsed
struct. `unfiltered_rows` converts it to the columns that users see.
"""

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
from odradek.pipelines.definition.vocabulary import Encoding, Tombstones
from odradek.pipelines.spark.frames import REJECTED, origin_struct, quoted
from odradek.pipelines.spark.reading.schema_mismatches import EXCERPT, MISMATCH, UNREADABLE, mismatch_message

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import Column, DataFrame

    from odradek.pipelines.definition.model import RecordSchema, Source

    Decoded = tuple[dict[str, Any] | None, str | None]  # the record, or None and the reason

PARSED = "__parsed"
NO_VALUE = "no value"
MOST_SCHEMAS = 1000
LONGEST_REASON = 200
NOT_AVRO = "not Avro of this schema"


def decoded(raw: DataFrame, source: Source) -> DataFrame:
    """Spark's Kafka columns, the parsed value, and the reason if it was rejected."""
    if PARSED in raw.columns:
        return raw  # a stand-in of the analysis
    encoding, schema = source.format.encoding, source.format.schema
    tombstones = source.format.tombstone_policy
    if tombstones is Tombstones.DROP:
        raw = raw.where(F.col("value").isNotNull())
    if schema is not None and encoding in {Encoding.JSON, Encoding.AVRO}:
        is_json = encoding is Encoding.JSON
        made = decode_json(raw, schema) if is_json else decode_avro(raw, schema, PARSED, REJECTED)
        judged = reject_missing_fields(made, schema)
        if tombstones is not Tombstones.ROWS:
            return judged
        return judged.withColumn(REJECTED, F.when(F.col("value").isNotNull(), F.col(REJECTED)))
    rejects = tombstones is Tombstones.DEAD_LETTERS
    reason = F.when(F.col("value").isNull(), F.lit(NO_VALUE)) if rejects else F.lit(None).cast("string")
    text = F.col("value").cast("string")
    parsed = F.struct(text.alias("value")) if encoding is Encoding.TEXT else F.struct(F.lit(1).alias("_"))
    return raw.select("*", parsed.alias(PARSED), reason.alias(REJECTED))


def decode_json(raw: DataFrame, schema: RecordSchema) -> DataFrame:
    text = F.col("value").cast("string")
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": UNREADABLE}
    nullable = ", ".join(f"{quoted(each.name)} {each.type.ddl}" for each in schema.columns)
    parsed = F.from_json(text, f"{nullable}, {UNREADABLE} STRING", options)
    excerpt = F.make_valid_utf8(F.substring(text, 1, EXCERPT))
    mismatch = F.coalesce(F.expr(mismatch_message("value", schema.columns)), F.concat(F.lit(f"{MISMATCH}: "), excerpt))

    def judged(value: Column) -> Column:
        is_read = value.isNotNull() & value.getField(UNREADABLE).isNull()
        reason = (
            F.when(is_read, F.lit(None))
            .when(F.col("value").isNull(), F.lit(NO_VALUE))
            .when(F.try_parse_json(text).isNull(), F.concat(F.lit("not JSON: "), excerpt))
            .otherwise(mismatch)
        )
        return F.struct(value.alias("value"), reason.alias("reason"))

    # Spark inlines an expression at every use of its column, but not the output of a generator: each value is parsed
    # once. Spark generates no code for `from_json`, so each operator that contains one splits the generated code of the
    # query. The parse and the reason, which parses rejected records again, share one generator: there is one split.
    generated = raw.select("*", F.explode(F.transform(F.array(parsed), judged)).alias(PARSED))
    return generated.withColumns({PARSED: F.col(f"{PARSED}.value"), REJECTED: F.col(f"{PARSED}.reason")})


def reject_missing_fields(frame: DataFrame, schema: RecordSchema) -> DataFrame:
    """Rejects records that lack a NOT NULL field, which Spark reads as null."""
    reason: Column = F.col(REJECTED)
    for each in schema.columns:
        if not each.nullable:
            is_missing = F.col(f"{PARSED}.{quoted(each.name)}").isNull()
            reason = F.coalesce(reason, F.when(is_missing, F.lit(f"missing field: {each.name}")))
    return frame.withColumn(REJECTED, reason)


def unfiltered_rows(frame: DataFrame, source: Source) -> DataFrame:
    """The columns that users see, for every record, and the reason if it was rejected."""
    schema = source.format.schema
    names = [each.name for each in schema.columns] if schema is not None else []
    if schema is None and source.format.encoding is Encoding.TEXT:
        names = ["value"]
    record = [
        F.col(name).alias(f"_{name}")
        for name in ("key", "value", "headers", "timestamp", "topic", "partition", "offset")
    ]
    columns = [F.col(f"{PARSED}.{quoted(name)}").alias(name) for name in names]
    return frame.select(*columns, *record, origin_struct(), REJECTED)


@dataclass(frozen=True, slots=True)
class AvroFormat:
    """How values are written: with the schema of their id if there are `writers`, otherwise with that of the reader."""

    reader: str
    writers: Mapping[int, str] | None = None

    def decode(self, value: bytes | None) -> Decoded:
        if value is None or (isinstance(value, float) and math.isnan(value)):
            return None, NO_VALUE
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
    """Adds the decoded struct, or null and the reason why the value could not be decoded. Spark's own Avro reader is a
    separate package, and does not say why a record is unreadable."""
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
