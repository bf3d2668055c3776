"""Records and dead letters of rows, each made of one record or as an array of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from odradek.pipelines.definition.model import Pipeline, TopicTarget
from odradek.pipelines.definition.operations import NamedExpression
from odradek.pipelines.definition.vocabulary import Encoding
from odradek.pipelines.spark.computing.encoding import Encoded, dead_letter, topic_record
from odradek.pipelines.spark.computing.rows import Frame, Rows
from odradek.pipelines.spark.frames import ORIGIN, REJECTED

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

PIPELINE = Pipeline("it's", dead_letters="letters")
VALUES = """
    (1, 'a', x'00ff', timestamp'2026-01-31 23:59:01.5', 0.5D, struct(1 as x, null as y), array(1, null)),
    (2, null, null, null, double('NaN'), null, array()),
    (3, 'it''s \\u00e9', x'', timestamp'1969-12-31 00:00:00', -0.0D, struct(null as x, 'z' as y), null)
"""
ORIGINS = f"""named_struct('topic', 'in', 'partition', int(id), 'offset', 40 + id, 'key', cast(name as binary),
'value', bytes, 'headers', if(id = 2, null, array(named_struct('key', 'sent', 'value', x'01')))) as {ORIGIN}"""
TARGETS = {
    "all columns": TopicTarget("out"),
    "some columns": TopicTarget("out", key="id", value=("NAME", "at")),
    "text": TopicTarget("out", key="name", value=("upper(name)",), encoding=Encoding.TEXT),
    "bytes": TopicTarget("out", key="bytes", value=("bytes",), encoding=Encoding.BYTES),
    "headers": TopicTarget(
        "out", headers=(NamedExpression("n", "id + 1"), NamedExpression("it's", "name")), deletes="name is null"
    ),
    "whole rows": TopicTarget("out", key="to_json(struct(*))", value=("xxhash64(id, name)",), encoding=Encoding.TEXT),
}


def rows_of(spark: SparkSession, *, has_origin: bool) -> DataFrame:
    rows = spark.sql(f"select * from values {VALUES} as t(id, name, bytes, at, price, meter, list)")
    return rows.selectExpr("*", ORIGINS) if has_origin else rows


def as_rows(frame: DataFrame, *, is_many: bool) -> tuple[Frame, Rows]:
    """The rows of a frame, each made of one record; as an array, twice."""
    names = [name for name in frame.columns if name != ORIGIN]
    if not is_many:
        return Frame(frame), Rows({name: (name,) for name in names})
    packed = F.array(*[F.struct(*names)] * 2).alias("packed")
    return Frame(frame.select(packed, *([ORIGIN] if ORIGIN in frame.columns else []))), Rows.several("packed", names)


def records_of(frame: Frame, encoded: Encoded) -> list[Any]:
    column = F.col(frame.add("out", encoded.records))
    each = F.explode(column) if encoded.rows.is_many else column
    return sorted(frame.frame.select(each.alias("it")).where("it is not null").select("it.*").collect(), key=repr)


@pytest.mark.more(but="True-all columns")
@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
@pytest.mark.parametrize("has_origin", [True, False])
def test_arrays_of_rows_have_the_records_of_single_ones(
    spark: SparkSession, target: TopicTarget, has_origin: bool
) -> None:
    written = rows_of(spark, has_origin=has_origin)
    found = []
    for is_many in (False, True):
        frame, rows = as_rows(written, is_many=is_many)
        encoded = topic_record(frame, PIPELINE, "out's", target, rows)
        found.append(records_of(frame, encoded))
        for refused in encoded.refused:
            assert frame.add_table("refused", refused).read(frame.frame).collect() == []
    assert len(found[0]) == 3
    assert found[1] == sorted(found[0] * 2, key=repr)


def test_a_record_has_the_columns_and_headers_of_its_end(spark: SparkSession) -> None:
    frame, rows = as_rows(rows_of(spark, has_origin=True), is_many=False)
    found = {
        each.key: each
        for each in records_of(frame, topic_record(frame, PIPELINE, "out's", TARGETS["some columns"], rows))
    }
    assert found[b"1"].value == b'{"NAME":"a","at":"2026-01-31T23:59:01.500Z"}'
    assert found[b"2"].value == b'{"NAME":null,"at":null}'
    ((name, value),) = found[b"1"].headers
    assert (name, value.decode().rpartition(":")[0]) == ("odradek-id", "it's/out's:in:1:41")  # and a hash
    frame, rows = as_rows(rows_of(spark, has_origin=False), is_many=False)
    deleted = [
        each
        for each in records_of(frame, topic_record(frame, PIPELINE, "o", TARGETS["headers"], rows))
        if each.value is None
    ]
    assert [each.headers[1:] for each in deleted] == [[("n", b"3"), ("it's", None)]]


@pytest.mark.more(but="True")
@pytest.mark.parametrize("has_origin", [True, False])
def test_a_dead_letter_has_the_record_and_its_reason(spark: SparkSession, has_origin: bool) -> None:
    refused = rows_of(spark, has_origin=has_origin).withColumn(REJECTED, F.concat(F.lit("why: "), "id"))
    found = []
    for is_many in (False, True):
        frame, rows = as_rows(refused, is_many=is_many)
        found.append(records_of(frame, dead_letter(frame, PIPELINE, "s", rows)))
    assert found[1] == sorted(found[0] * 2, key=repr)
    assert sorted(dict(each.headers)["odradek-reason"] for each in found[0]) == [b"why: 1", b"why: 2", b"why: 3"]
    assert {each.topic for each in found[0]} == {"letters"}
    if has_origin:
        assert sorted(each.value or b"" for each in found[0]) == [b"", b"", b"\x00\xff"]


@pytest.mark.more(but="False")
@pytest.mark.parametrize("is_many", [False, True])
def test_a_row_whose_record_cannot_be_computed_is_refused(spark: SparkSession, is_many: bool) -> None:
    target = TopicTarget("out", key="cast(name as int)", value=("name",), encoding=Encoding.TEXT)
    frame, rows = as_rows(rows_of(spark, has_origin=True), is_many=is_many)
    encoded = topic_record(frame, PIPELINE, "out", target, rows)
    assert [row.value for row in records_of(frame, encoded)] == [None] * (1 + is_many)
    letters = records_of(frame, dead_letter(frame, PIPELINE, "out", *encoded.refused))
    assert sorted(row.value for row in letters) == sorted([b"\x00\xff", b""] * (1 + is_many))
    assert {row.headers[0].value.decode().partition(":")[0] for row in letters} == {"cannot be computed"}


def test_a_row_that_does_not_exist_has_no_record(spark: SparkSession) -> None:
    frame, rows = as_rows(rows_of(spark, has_origin=False), is_many=False)
    encoded = topic_record(frame, PIPELINE, "out", TARGETS["headers"], replace(rows, condition="`id` = 2"))
    (record,) = records_of(frame, encoded)
    assert record.value is None
