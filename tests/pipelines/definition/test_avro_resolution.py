"""Avro's rules of resolution: schema evolutions with known results, and fastavro's own resolving reader."""

from __future__ import annotations

import io
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import fastavro
import pytest
from hypothesis import given, settings

from odradek.pipelines.definition.avro_resolution import Unresolvable, converter
from odradek.pipelines.definition.avro_types import avro_type, wire_schema
from tests.pipelines.definition.avro_evolutions import evolved_records


def encoded(schema: Any, value: Any) -> bytes:
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, schema, value)
    return stream.getvalue()


def resolved(writer: Any, reader: Any, value: bytes) -> Any:
    schema = fastavro.parse_schema(wire_schema(avro_type(writer)))
    return converter(avro_type(writer), avro_type(reader))(fastavro.schemaless_reader(io.BytesIO(value), schema, None))


def record(*fields: Any, name: str = "r", **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields), **more}


def field(name: str, kind: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, **more}


def read_as(writer: Any, reader: Any, value: Any) -> Any:
    """The field `a`, written with one type and read with another."""
    written, read = record(field("a", writer)), record(field("a", reader))
    return resolved(written, read, encoded(written, {"a": value}))["a"]


def without_members(value: Any) -> Any:
    """A value as fastavro returns it: a union is the value of its member."""
    if isinstance(value, dict):
        if len(value) == 1 and next(iter(value)).startswith("member"):
            return next(iter(value.values()))
        return {key: without_members(each) for key, each in value.items()}
    return [without_members(each) for each in value] if isinstance(value, list) else value


def has_bytes_default(schema: Any) -> bool:
    return '"default": "\\u00ff"' in json.dumps(schema)


@settings(max_examples=200, deadline=None)
@given(evolved_records())
def test_every_evolution_is_read_as_it_must_be(case: tuple[Any, Any, Any, Any]) -> None:
    writer, reader, written, expected = case
    value = encoded(writer, written)
    assert resolved(writer, reader, value) == expected
    if not has_bytes_default(reader):  # fastavro leaves the text of the schema in place of bytes
        assert fastavro.schemaless_reader(io.BytesIO(value), writer, reader) == without_members(expected)


def test_a_missing_field_takes_the_default_of_its_type() -> None:
    writer = record(field("a", "int"))
    meter = record(field("unit", "string", default="bar"), field("n", "int"), name="meter")
    reader = record(
        field("note", ["null", "string"], default=None),
        field("data", "bytes", default="\u00ff"),
        field("at", {"type": "long", "logicalType": "timestamp-millis"}, default=1000),
        field("price", {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}, default="\u0001\u0000"),
        field("meter", meter, default={"n": 2}),
        field("tags", {"type": "array", "items": "string"}, default=["x"]),
        field("either", ["long", "string"], default=3),
        field("ratio", "double", default=1),
    )
    assert resolved(writer, reader, encoded(writer, {"a": 1})) == {
        "note": None,
        "data": b"\xff",
        "at": datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC),
        "price": Decimal("2.56"),
        "meter": {"unit": "bar", "n": 2},
        "tags": ["x"],
        "either": {"member0": 3},
        "ratio": 1.0,
    }


def test_a_named_type_may_be_defined_in_another_field() -> None:
    meter = record(field("unit", "string"), name="meter")
    writer = record(field("a", meter), field("b", "meter"))
    reader = record(field("b", {**meter, "aliases": ["gauge"]}), field("a", "meter"))
    value = encoded(writer, {"a": {"unit": "bar"}, "b": {"unit": "psi"}})
    assert resolved(writer, reader, value) == {"b": {"unit": "psi"}, "a": {"unit": "bar"}}


def test_a_union_prefers_the_same_type_to_a_promotion() -> None:
    assert read_as("long", ["null", "double", "long"], 3) == {"member1": 3}
    assert read_as("int", ["null", "string", "double"], 3) == {"member1": 3.0}


def test_a_union_is_reported_apart_where_python_values_are_alike() -> None:
    assert read_as(["int", "string"], ["string", "long"], 3) == {"member1": 3}
    writer = record(field("a", ["float", "double"]))
    value = b"\x02" + encoded("double", 0.1)
    assert resolved(writer, record(field("a", ["float", "double"])), value) == {"a": {"member1": 0.1}}


def test_a_member_that_the_reader_lacks_is_refused_when_it_occurs() -> None:
    assert read_as(["null", "long"], "long", 5) == 5
    with pytest.raises(Unresolvable, match="field 'a' is null for its writer and long for the reader"):
        read_as(["null", "long"], "long", None)


def test_logical_types_are_those_of_the_reader() -> None:
    millis = {"type": "long", "logicalType": "timestamp-millis"}
    micros = {"type": "long", "logicalType": "timestamp-micros"}
    moment = datetime(2026, 1, 1, 12, tzinfo=UTC)
    assert read_as(millis, micros, moment) == moment
    assert read_as("long", millis, int(moment.timestamp() * 1000)) == moment
    assert read_as(millis, "long", moment) == int(moment.timestamp() * 1000)
    assert read_as(
        {"type": "int", "logicalType": "date"}, {"type": "int", "logicalType": "date"}, date(2026, 1, 2)
    ) == (date(2026, 1, 2))
    assert read_as({"type": "int", "logicalType": "time-millis"}, "int", 5) == 5


@pytest.mark.parametrize(
    ("writer", "reader", "reason"),
    [
        ("string", "long", "field 'a' is string for its writer and long for the reader"),
        ("long", "int", "field 'a' is long for its writer and int for the reader"),
        (
            {"type": "int", "logicalType": "date"},
            {"type": "long", "logicalType": "timestamp-millis"},
            "field 'a' is date for its writer and timestamp-millis for the reader",
        ),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2},
            {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 3},
            "field 'a' is decimal of scale 2 for its writer and decimal of scale 3 for the reader",
        ),
        (
            {"type": "array", "items": "string"},
            {"type": "array", "items": "int"},
            "an element of field 'a' is string for its writer and int for the reader",
        ),
        (
            {"type": "enum", "name": "e", "symbols": ["A"]},
            {"type": "enum", "name": "f", "symbols": ["A"]},
            "field 'a' is enum e for its writer and enum f for the reader",
        ),
        (["null", "string"], ["null", "int"], None),
        (["string", "bytes"], "int", "field 'a' is [string, bytes] for its writer and int for the reader"),
    ],
)
def test_schemas_that_never_fit_are_refused(writer: Any, reader: Any, reason: str | None) -> None:
    pair = avro_type(record(field("a", writer))), avro_type(record(field("a", reader)))
    if reason is None:  # null fits
        converter(*pair)
        return
    with pytest.raises(Unresolvable) as found:
        converter(*pair)
    assert str(found.value) == reason


def test_a_new_field_without_a_default_is_refused() -> None:
    with pytest.raises(Unresolvable, match="field 'b' has no default, and its writer does not write it"):
        converter(avro_type(record(field("a", "int"))), avro_type(record(field("b", "int"))))
