"""The reason of a dead letter names the field that does not fit the schema, and what was found."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from odradek.pipelines.definition.column_types import Array, Column, Primitive, Struct
from odradek.pipelines.definition.model import RecordFormat, RecordSchema, Source, TopicOrigin
from odradek.pipelines.spark.hidden_columns import REJECTED
from odradek.pipelines.spark.record_files import RECORD_DDL
from odradek.pipelines.spark.records import decoded, rejects_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SCHEMA = RecordSchema((
    Column("id", Primitive("BIGINT")),
    Column("it's", Primitive("BOOLEAN")),
    Column("at", Primitive("TIMESTAMP")),
    Column("sensor_readings", Struct((Column("pressure", Primitive("DOUBLE")), Column("unit", Primitive("STRING"))))),
    Column("tags", Array(Primitive("BIGINT"))),
))  # fmt: skip
SOURCE = Source("rigs", TopicOrigin(("rigs",)), RecordFormat(schema=SCHEMA))
REASONS = {
    '{"id": 1, "sensor_readings": {"pressure": "abc"}}': 'field sensor_readings.pressure: expected DOUBLE, found "abc"',
    '{"id": 1.5, "tags": "x"}': "field id: expected BIGINT, found 1.5",
    '{"id": {"a": 1}}': 'field id: expected BIGINT, found {"a":1}',
    '{"it\'s": 7}': "field it's: expected BOOLEAN, found 7",
    '{"at": "noon"}': 'field at: expected TIMESTAMP, found "noon"',
    '{"sensor_readings": [1]}': "field sensor_readings: expected an object, found [1]",
    '{"tags": [1, "%s"]}' % ("x" * 100): f'field tags: expected ARRAY<BIGINT>, found [1,"{"x" * 56}',
    "7": "expected an object, found 7",
    '{"sensor_readings": null, "tags": null}': None,
}


def test_a_reason_names_the_field_and_what_was_found(spark: SparkSession) -> None:
    rows = [(None, text.encode(), "rigs", 0, offset, None, 0, None) for offset, text in enumerate(REASONS)]
    raw = spark.createDataFrame(rows, RECORD_DDL)
    found = rejects_of(decoded(raw, SOURCE), SOURCE).select(F.col("__origin.value").cast("string"), REJECTED).collect()
    expected = {text: f"does not fit the schema: {reason}" for text, reason in REASONS.items() if reason is not None}
    assert dict(map(tuple, found)) == expected
