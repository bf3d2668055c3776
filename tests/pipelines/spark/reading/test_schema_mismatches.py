"""The reason of a dead letter names the field that does not fit the schema, and what was found."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from odradek.pipelines.definition.column_types import Array, Column, Decimal, Map, Primitive, Struct
from odradek.pipelines.definition.model import RecordFormat, RecordSchema, Source, TopicOrigin
from odradek.pipelines.spark.frames import REJECTED
from odradek.pipelines.spark.reading.record_files import RECORD_DDL
from odradek.pipelines.spark.reading.records import decoded, unfiltered_rows
from odradek.pipelines.spark.reading.schema_mismatches import mismatch_message

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

INNER = Struct((Column('of "it\'s"', Primitive("INT")), Column("n", Primitive("INT"))))
SCHEMA = RecordSchema((
    Column("id", Primitive("BIGINT")),
    Column("it's", Primitive("BOOLEAN")),
    Column("at", Primitive("TIMESTAMP")),
    Column("sensor_readings", Struct((Column("pressure", Primitive("DOUBLE")), Column("unit", Primitive("STRING"))))),
    Column("tags", Array(Primitive("BIGINT"))),
    Column("price", Decimal(5, 2)),
    Column("day", Primitive("DATE")),
    Column("by_name", Map(Primitive("STRING"), Primitive("INT"))),
    Column("outer", Struct((Column("inner", INNER),))),
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
    '{"price": 12345.5}': "field price: expected DECIMAL(5,2), found 12345.5",
    '{"day": "2026-13-01", "id": null}': 'field day: expected DATE, found "2026-13-01"',
    '{"by_name": {"a": 1, "b": "x"}}': 'field by_name: expected MAP<STRING, INT>, found {"a":1,"b":"x"}',
    '{"outer": {"inner": {"n": true}}}': "field outer.inner.n: expected INT, found true",
    '{"outer": {"inner": 5}}': "field outer.inner: expected an object, found 5",
    '{"outer": {"inner": {"of \\"it\'s\\"": "x"}}}': """field outer.inner.of "it's": expected INT, found "x\"""",
    '{"sensor_readings": {"pressure": 1}, "ID": "another field", "id": "x"}': 'field id: expected BIGINT, found "x"',
    "7": "expected an object, found 7",
    '{"sensor_readings": null, "tags": null}': None,
}


def test_a_reason_names_the_field_and_what_was_found(spark: SparkSession) -> None:
    rows = [(None, text.encode(), "rigs", 0, offset, None, 0, None) for offset, text in enumerate(REASONS)]
    raw = spark.createDataFrame(rows, RECORD_DDL)
    rejects = decoded(raw, SOURCE).where(F.col(REJECTED).isNotNull())
    found = rejects.select(F.col("value").cast("string"), REJECTED).collect()
    expected = {text: f"does not fit the schema: {reason}" for text, reason in REASONS.items() if reason is not None}
    assert dict(map(tuple, found)) == expected


def test_the_reason_does_not_grow_with_the_fields() -> None:
    """Spark plans the expression again in each batch: one parse for each field made each batch a third longer."""
    few, many = ([Column(f"n{number}", Primitive("BIGINT")) for number in range(count)] for count in (1, 40))
    assert mismatch_message("a", many).count("(") == mismatch_message("a", few).count("(")


@pytest.mark.more
def test_the_reason_does_not_divide_the_generated_code(spark: SparkSession) -> None:
    """A parse outside the generator made one more part of the code, and each batch of the rigs a fifth longer."""
    raw = spark.createDataFrame([(None, b"{}", "rigs", 0, 0, None, 0, None)], RECORD_DDL)
    rows = unfiltered_rows(decoded(raw, SOURCE), SOURCE)
    plan = rows._jdf.queryExecution().executedPlan().toString()
    assert plan.count("from_json") > 1
    assert [line for line in plan.splitlines() if "from_json" in line and "Generate explode" not in line] == []
