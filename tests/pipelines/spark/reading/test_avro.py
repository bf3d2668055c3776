"""Avro of every type, through a pipeline's decoder and back as rows."""

from __future__ import annotations

import io
import json
import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from uuid import UUID

import fastavro
import pytest
from hypothesis import given, settings

from odradek.pipelines.definition.avro import avro_columns
from odradek.pipelines.definition.model import RecordSchema
from odradek.pipelines.spark.reading.records import AvroFormat, compiled, decode_avro, decode_with
from tests.pipelines.definition.avro_evolutions import evolved_records

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "reading",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "note", "type": ["null", "string"]},
        {"name": "meter", "type": {"type": "record", "name": "meter", "fields": [{"name": "unit", "type": "string"}]}},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "limits", "type": {"type": "map", "values": "double"}},
        {"name": "state", "type": {"type": "enum", "name": "state", "symbols": ["ON", "OFF"]}},
        {"name": "hash", "type": {"type": "fixed", "name": "hash", "size": 2}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "token", "type": {"type": "string", "logicalType": "uuid"}},
    ],
}
TOKEN = "12345678-1234-5678-1234-567812345678"
RECORD: dict[str, Any] = {
    "id": 1,
    "note": None,
    "meter": {"unit": "bar"},
    "tags": ["a", "b"],
    "limits": {"low": 0.5},
    "state": "ON",
    "hash": b"\x00\xff",
    "price": Decimal("12.34"),
    "at": datetime(2026, 1, 1, 12, tzinfo=UTC),
    "day": date(2026, 1, 2),
    "token": UUID(TOKEN),
}
TEXT = json.dumps(SCHEMA)


def encoded(**changes: Any) -> bytes:
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, SCHEMA, {**RECORD, **changes})
    return stream.getvalue()


def decoded(value: bytes | None) -> tuple[dict[str, Any] | None, str | None]:
    return AvroFormat(TEXT).decode(value)


def test_what_is_not_of_the_schema_is_reported() -> None:
    for broken in (b"", b"\xff" * 4, encoded()[:-3], encoded() + b"x"):
        record, reason = decoded(broken)
        assert record is None
        assert reason is not None
        assert reason.startswith("not Avro of this schema: ")
    assert decoded(None) == (None, "no value")


V1: dict[str, Any] = {"type": "record", "name": "r", "fields": [{"name": "a", "type": "int"}]}
V2: dict[str, Any] = {
    "type": "record",
    "name": "r",
    "fields": [{"name": "b", "type": "string"}, {"name": "a", "type": "int"}],
}
READER: dict[str, Any] = {
    "type": "record",
    "name": "r",
    "fields": [{"name": "a", "type": "long"}, {"name": "b", "type": ["null", "string"], "default": None}],
}


def written(schema: dict[str, Any], value: Any, schema_id: int | None = None) -> bytes:
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, schema, value)
    header = b"" if schema_id is None else b"\0" + schema_id.to_bytes(4)
    return header + stream.getvalue()


BY_ID = AvroFormat(json.dumps(READER), {1: json.dumps(V1), 258: json.dumps(V2)})


def test_the_writer_is_found_by_the_id_in_the_record() -> None:
    assert BY_ID.decode(written(V1, {"a": 5}, 1)) == ({"a": 5, "b": None}, None)
    assert BY_ID.decode(written(V2, {"b": "x", "a": 6}, 258)) == ({"a": 6, "b": "x"}, None)


def test_an_unknown_id_is_reported_with_what_to_do() -> None:
    assert BY_ID.decode(written(V1, {"a": 5}, 7)) == (
        None,
        "unknown schema id: 7, not among 1, 258; add its schema to writer_schemas of the source",
    )


def test_a_record_without_an_id_is_reported() -> None:
    for value in (b"\1\2\3\4\5\6", b"\0\0\0\0", b""):
        record, reason = BY_ID.decode(value)
        assert record is None
        assert reason is not None
        assert reason.startswith("no schema id: ")


def test_bytes_that_are_not_of_the_writer_are_reported_with_the_id() -> None:
    assert BY_ID.decode(b"\0\0\0\0\1")[1] == "not Avro of this schema: schema id 1: EOFError "
    record, reason = BY_ID.decode(written(V1, {"a": 5}, 1) + b"x")
    assert (record, reason) == (None, "not Avro of this schema: schema id 1: trailing bytes after the record")


def test_without_ids_no_byte_of_a_record_is_skipped() -> None:
    one = {"type": "record", "name": "r", "fields": [{"name": name, "type": "long"} for name in "abcdef"]}
    value = written(one, {"a": 0, "b": 0, "c": 0, "d": 0, "e": 1, "f": 2})
    assert value[:5] == b"\0\0\0\0\2"  # looks like a header
    assert AvroFormat(json.dumps(one)).decode(value) == ({"a": 0, "b": 0, "c": 0, "d": 0, "e": 1, "f": 2}, None)


def test_schemas_are_compiled_once_for_all_records() -> None:
    compiled.cache_clear()
    for number in range(50):
        BY_ID.decode(written(V1, {"a": number}, 1))
        BY_ID.decode(written(V2, {"b": "x", "a": number}, 258))
    assert compiled.cache_info().misses == 2


@pytest.mark.spark
def test_every_type_becomes_a_column(spark: SparkSession) -> None:
    raw = spark.createDataFrame([(encoded(),), (encoded(note="n"),), (b"\xff",)], "value BINARY")
    schema = RecordSchema(avro_columns(SCHEMA), json.dumps(SCHEMA))
    rows = decode_avro(raw, schema, "parsed", "rejected").select("parsed.*", "rejected").collect()
    first = rows[0].asDict(recursive=True)
    assert first.pop("rejected") is None
    assert first.pop("at").astimezone(UTC) == RECORD["at"]
    expected = {key: value for key, value in RECORD.items() if key != "at"}
    assert first == {**expected, "token": TOKEN}
    assert rows[1]["note"] == "n"
    assert (rows[2]["id"], rows[2]["rejected"][:23]) == (None, "not Avro of this schema")


@pytest.mark.spark
def test_two_writers_of_one_topic_become_rows_of_one_schema(spark: SparkSession) -> None:
    values = [written(V1, {"a": 5}, 1), written(V2, {"b": "x", "a": 6}, 258), written(V1, {"a": 5}, 9), None]
    raw = spark.createDataFrame([(each,) for each in values], "value BINARY")
    schema = RecordSchema(avro_columns(READER), json.dumps(READER), writers=BY_ID.writers)
    rows = decode_avro(raw, schema, "parsed", "rejected").select("parsed.*", "rejected").collect()
    assert [tuple(row) for row in rows[:2]] == [(5, None, None), (6, "x", None)]
    assert [row["rejected"][:20] for row in rows[2:]] == ["unknown schema id: 9", "no value"]


@pytest.mark.more
@pytest.mark.spark
def test_avros_java_library_resolves_the_same(spark: SparkSession) -> None:
    java = spark._jvm.org.apache.avro  # type: ignore[union-attr]  # a local session has a JVM
    factory = java.io.DecoderFactory.get()
    compared = 0

    def in_java(writer: Any, reader: Any, value: bytes) -> Any:
        schemas = [getattr(java, "Schema$Parser")().parse(json.dumps(each)) for each in (writer, reader)]
        read = java.generic.GenericDatumReader(*schemas).read(None, factory.binaryDecoder(value, None))
        return json.loads(read.toString())

    @settings(max_examples=40, deadline=None, database=None, derandomize=True)
    @given(evolved_records())
    def compare(case: tuple[Any, Any, Any, Any]) -> None:
        nonlocal compared
        writer, reader, content, _expected = case
        value = written(writer, content)
        record, reason = decode_with(json.dumps(writer), json.dumps(reader), value)
        assert reason is None
        assert is_alike(in_java(writer, reader, value), record)
        compared += 1

    compare()
    assert compared >= 40


def is_alike(java: Any, ours: Any) -> bool:
    """Compares with Java's JSON: bytes are text of their code points, fixed a list, and floats have few digits."""
    if isinstance(ours, dict):
        return set(java) == set(ours) and all(is_alike(java[key], ours[key]) for key in ours)
    if isinstance(ours, list):
        return len(java) == len(ours) and all(map(is_alike, java, ours))
    if isinstance(ours, bytes):
        return bool(
            java == ours.decode("latin-1") if isinstance(java, str) else bytes(each & 255 for each in java) == ours
        )
    if isinstance(ours, float):
        return math.isclose(java, ours, rel_tol=1e-6)
    return bool(java == ours)
