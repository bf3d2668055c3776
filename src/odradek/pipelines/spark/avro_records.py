"""Avro by fastavro: Spark's own Avro reader is a package of its own, and tells nothing about what it cannot read."""

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

CONFLUENT_HEADER_BYTES = 5  # a zero and the number of a schema in a registry


def decode_avro(raw: DataFrame, schema: RecordSchema, parsed: str, rejected: str) -> DataFrame:
    """Adds the decoded struct and the reason why there is none."""
    text = schema.avro
    if text is None:
        raise ValueError("records in Avro need an Avro schema")
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
    """The record of these bytes, or why there is none; a registry's five bytes in front are skipped."""
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
        reason = reason or "bytes are left over"
    return None, f"not Avro of this schema: {reason}"[:200]
