"""Converts records of topics to rows: the value parsed by its format, next to the record's own fields.

No record is dropped. A value that fails to parse keeps its row, with the reason in `__rejected`; the part of the reason
before the first colon is its kind. `decoded` is the form in which a batch is cached: the original record and the parsed
struct. `rows_of` converts it to the columns that users see.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - its usual name

from odradek.pipelines.definition.vocabulary import Encoding, Tombstones
from odradek.pipelines.spark.frames import REJECTED, origin_struct, quoted
from odradek.pipelines.spark.reading.avro import decode_avro
from odradek.pipelines.spark.reading.schema_mismatches import EXCERPT, MISMATCH, UNREADABLE, mismatch_message

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from odradek.pipelines.definition.model import RecordSchema, Source

PARSED = "__parsed"
NO_VALUE = "no value"


def decoded(raw: DataFrame, source: Source) -> DataFrame:
    """Spark's Kafka columns, the parsed value, and the reason if it was rejected."""
    if PARSED in raw.columns:
        return raw  # decoded before, for several flows
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
    """The columns of `rows_of` for every record, and the reason if it was rejected."""
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
