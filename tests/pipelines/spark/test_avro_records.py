"""Avro of every type, through a pipeline's decoder and back as rows."""

from __future__ import annotations

import io
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from uuid import UUID

import fastavro
import pytest

from odradek.pipelines.definition.avro_schema import avro_columns
from odradek.pipelines.definition.column_types import Struct
from odradek.pipelines.definition.model import RecordSchema
from odradek.pipelines.spark.avro_records import decode_avro, decode_value

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
        {"name": "either", "type": ["null", "boolean", "long", "string", "meter"]},
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
    "either": None,
}
KIND = Struct(avro_columns(SCHEMA))


def encoded(**changes: Any) -> bytes:
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, SCHEMA, {**RECORD, **changes})
    return stream.getvalue()


def decoded(value: bytes | None) -> tuple[dict[str, Any] | None, str | None]:
    return decode_value(value, fastavro.parse_schema(SCHEMA), KIND)


@pytest.mark.parametrize(
    ("value", "member"),
    [(True, "member0"), (7, "member1"), ("x", "member2"), ({"unit": "bar"}, "member3")],
)
def test_a_union_is_a_struct_with_one_member(value: Any, member: str) -> None:
    record, reason = decoded(encoded(either=value))
    assert reason is None
    assert record is not None
    assert record["either"] == {member: value}


def test_what_is_not_of_the_schema_is_told() -> None:
    for broken in (b"", b"\xff" * 4, encoded()[:-3], encoded() + b"x"):
        record, reason = decoded(broken)
        assert record is None
        assert reason is not None
        assert reason.startswith("not Avro of this schema: ")
    assert decoded(None) == (None, "no value")


def test_the_five_bytes_of_a_registry_are_skipped() -> None:
    assert decoded(b"\0\0\0\0\x07" + encoded())[0] == decoded(encoded())[0]


@pytest.mark.spark
def test_every_type_becomes_a_column(spark: SparkSession) -> None:
    raw = spark.createDataFrame([(encoded(either="x"),), (encoded(note="n"),), (b"\xff",)], "value BINARY")
    schema = RecordSchema(avro_columns(SCHEMA), json.dumps(SCHEMA))
    rows = decode_avro(raw, schema, "parsed", "rejected").select("parsed.*", "rejected").collect()
    first = rows[0].asDict(recursive=True)
    assert first.pop("rejected") is None
    assert first.pop("at").astimezone(UTC) == RECORD["at"]
    expected = {key: value for key, value in RECORD.items() if key != "at"}
    either = {"member0": None, "member1": None, "member2": "x", "member3": None}
    assert first == {**expected, "token": TOKEN, "either": either}
    assert (rows[1]["note"], rows[1]["either"]) == ("n", None)
    assert (rows[2]["id"], rows[2]["rejected"][:23]) == (None, "not Avro of this schema")
