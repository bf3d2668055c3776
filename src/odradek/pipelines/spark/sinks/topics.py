"""Converts rows to records of topics; the records of one producer are written by one job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql.types import BinaryType

from odradek.pipelines.definition.vocabulary import Delivery, Encoding
from odradek.pipelines.letters.letter import ID_HEADER
from odradek.pipelines.spark.dead_letters import header, origin_id
from odradek.pipelines.spark.hidden_columns import has_origin, is_divided, quoted, user_expression, visible_columns
from odradek.pipelines.spark.writing.delivery import origin_split

if TYPE_CHECKING:
    from pyspark.sql import Column

    from odradek.pipelines.definition.model import Pipeline, Sink, TopicTarget

JSON_OPTIONS = {"ignoreNullFields": "false"}


def records_of(frame: DataFrame, sink: Sink, target: TopicTarget, pipeline: Pipeline) -> DataFrame:
    """The records of a topic sink, with the columns of Spark's Kafka sink."""
    key = as_bytes(frame, user_expression(frame, target.key)) if target.key is not None else F.lit(None).cast("binary")
    return frame.withColumn("__value", value_of(frame, target)).select(
        F.lit(target.topic).alias("topic"),
        key.alias("key"),
        F.col("__value").alias("value"),
        F.array(
            header(ID_HEADER, record_id(frame, sink, pipeline, key)),
            *(header(each.name, user_expression(frame, each.expression)) for each in target.headers),
        ).alias("headers"),
        *([origin_split()] if pipeline.delivery is Delivery.EXACTLY_ONCE and is_divided(frame) else []),
    )


def value_of(frame: DataFrame, target: TopicTarget) -> Column:
    """The value of a record; null for a tombstone."""
    value = encoded_value(frame, target)
    return value if target.deletes is None else F.when(~F.coalesce(F.expr(target.deletes), F.lit(False)), value)


def encoded_value(frame: DataFrame, target: TopicTarget) -> Column:
    if target.encoding is Encoding.JSON:
        names = target.value or visible_columns(frame)
        return F.to_json(F.struct(*(F.col(quoted(name)) for name in names)), JSON_OPTIONS).cast("binary")
    return as_bytes(frame, user_expression(frame, target.value[0]))


def as_bytes(frame: DataFrame, column: Column) -> Column:
    """Bytes unchanged, other types as text; casting a number to binary would give its bits."""
    is_binary = isinstance(frame.select(column.alias("it")).schema["it"].dataType, BinaryType)
    return column if is_binary else column.cast("string").cast("binary")


def record_id(frame: DataFrame, sink: Sink, pipeline: Pipeline, key: Column) -> Column:
    """An id that is stable across replays: the origin record, and which of that record's rows this is."""
    content = F.hex(F.xxhash64(key, F.col("__value")))
    place = f"{pipeline.name}/{sink.name}"
    return F.concat_ws(":", origin_id(place) if has_origin(frame) else F.lit(place), content)
