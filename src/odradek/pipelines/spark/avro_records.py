"""Decodes Avro with fastavro. Spark's Avro reader is a separate package and does not say why a record is unreadable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql.pandas.functions import pandas_udf

from odradek.pipelines.spark.avro_decoding import AvroFormat
from odradek.pipelines.spark.hidden_columns import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from odradek.pipelines.definition.model import RecordSchema


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
    return AvroFormat(schema.avro, schema.writer or schema.avro, schema.writers)


def avro_decoder(how: AvroFormat) -> Any:
    def decode(values: pd.Series) -> pd.DataFrame:
        outcomes = [how.decode(value) for value in values]
        return pd.DataFrame({"record": [each[0] for each in outcomes], "reason": [each[1] for each in outcomes]})

    decode.__annotations__ = {"values": pd.Series, "return": pd.DataFrame}
    return decode
