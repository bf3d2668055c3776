"""Decodes Avro with fastavro. Spark's Avro reader is a separate package and does not say why a record is unreadable."""

from __future__ import annotations

import io
import json
import math
from typing import TYPE_CHECKING, Any

import pandas as pd
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql.pandas.functions import pandas_udf

from odradek.pipelines.definition.column_types import Struct
from odradek.pipelines.spark.avro_values import column_value
from odradek.pipelines.spark.hidden_columns import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from odradek.pipelines.definition.model import RecordSchema

CONFLUENT_HEADER_BYTES = 5  # Confluent's wire format: a zero byte and the schema id


def decode_avro(raw: DataFrame, schema: RecordSchema, parsed: str, rejected: str) -> DataFrame:
    """Adds the decoded struct, or null and the reason why the value could not be decoded."""
    text = schema.avro
    if text is None:
        raise ValueError("format: avro needs an Avro schema")
    columns = ", ".join(f"{quoted(each.name)}: {each.type.ddl}" for each in schema.columns)
    decode = pandas_udf(avro_decoder(text, Struct(schema.columns)), f"record STRUCT<{columns}>, reason STRING")  # type: ignore[call-overload]
    return (
        raw.withColumn("__decoded", decode(F.col("value")))
        .withColumn(parsed, F.col("__decoded.record"))
        .withColumn(rejected, F.col("__decoded.reason"))
        .drop("__decoded")
    )


def avro_decoder(schema_text: str, kind: Struct) -> Any:
    def decode(values: pd.Series) -> pd.DataFrame:
        from fastavro import parse_schema  # noqa: PLC0415 - on the worker

        schema = parse_schema(json.loads(schema_text))
        outcomes = [decode_value(value, schema, kind) for value in values]
        return pd.DataFrame({"record": [each[0] for each in outcomes], "reason": [each[1] for each in outcomes]})

    decode.__annotations__ = {"values": pd.Series, "return": pd.DataFrame}
    return decode


def decode_value(value: bytes | None, schema: Any, kind: Struct) -> tuple[dict[str, Any] | None, str | None]:
    """The decoded record, or None and the reason; the five bytes of Confluent's wire format are skipped if present."""
    from fastavro import schemaless_reader  # noqa: PLC0415

    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None, "no value"
    attempts = [value[CONFLUENT_HEADER_BYTES:], value] if value[:1] == b"\0" else [value]
    reason = ""
    for attempt in attempts:
        stream = io.BytesIO(attempt)
        try:
            record = column_value(schemaless_reader(stream, schema, None), kind)
        except Exception as error:
            reason = reason or f"{type(error).__name__} {error}"
            continue
        if not stream.read(1):
            return record, None
        reason = reason or "trailing bytes after the record"
    return None, f"not Avro of this schema: {reason}"[:200]
