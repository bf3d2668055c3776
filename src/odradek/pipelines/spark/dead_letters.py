"""Records of the dead-letter topic: the original bytes, with the reason and the origin in headers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - its usual name

from odradek.pipelines.letters.letter import (
    ID_HEADER,
    PIPELINE_HEADER,
    REASON_HEADER,
    SOURCE_HEADER,
    STEP_HEADER,
    TOPIC_HEADER,
)
from odradek.pipelines.spark.hidden_columns import ORIGIN, REJECTED, has_origin, quoted, visible_columns

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

NO_HEADERS = "cast(array() as array<struct<key: string, value: binary>>)"


def header(name: str, value: Column) -> Column:
    return F.struct(F.lit(name).alias("key"), value.cast("string").cast("binary").alias("value"))


def origin_id(prefix: str) -> Column:
    """An id of the original record: stable across replays and unique in the log."""
    place = (F.col(f"{ORIGIN}.{name}").cast("string") for name in ("topic", "partition", "offset"))
    return F.concat_ws(":", F.lit(prefix), *place)


def dead_letters(frame: DataFrame, pipeline: str, place: str, topic: str) -> DataFrame:
    """Converts rows with a reason in `__rejected` to records; a row without an origin record is written as JSON."""
    headers = [
        header(REASON_HEADER, F.col(REJECTED)),
        header(PIPELINE_HEADER, F.lit(pipeline)),
        header(STEP_HEADER, F.lit(place)),
    ]
    if has_origin(frame):
        source = F.concat_ws(":", F.col(f"{ORIGIN}.partition"), F.col(f"{ORIGIN}.offset"))
        headers += [
            header(TOPIC_HEADER, F.col(f"{ORIGIN}.topic")),
            header(SOURCE_HEADER, source),
            header(ID_HEADER, origin_id(f"{pipeline}/{place}")),
        ]
        key, value = F.col(f"{ORIGIN}.key"), F.col(f"{ORIGIN}.value")
        own = F.coalesce(F.col(f"{ORIGIN}.headers"), F.expr(NO_HEADERS))
    else:
        row = F.to_json(F.struct(*(F.col(quoted(name)) for name in visible_columns(frame))))
        key, value, own = F.lit(None).cast("binary"), row.cast("binary"), F.expr(NO_HEADERS)
        headers.append(header(ID_HEADER, F.concat_ws(":", F.lit(f"{pipeline}/{place}"), F.hex(F.xxhash64(value)))))
    return frame.select(
        F.lit(topic).alias("topic"),
        key.alias("key"),
        value.alias("value"),
        F.concat(F.array(*headers), own).alias("headers"),
    )
