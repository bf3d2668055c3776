"""Avro and Protobuf values become JSON by schemas from files, before they are masked."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING

import fastavro
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory  # type: ignore[import-untyped]  # without types

from odradek.console.records.masking import HIDDEN, DecodeAndMask, SchemaError, load_decoder, parse_rule
from odradek.console.records.record import Record

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "long"}, {"name": "card", "type": "string"}, {"name": "raw", "type": "bytes"}],
}
REGISTERED = b"\0\0\0\0\x07"


def avro_value(order: dict[str, object]) -> bytes:
    buffer = io.BytesIO()
    fastavro.schemaless_writer(buffer, fastavro.parse_schema(dict(SCHEMA)), order)
    return buffer.getvalue()


def record(value: bytes) -> Record:
    return Record("orders", 0, 0, 0, None, value)


@pytest.fixture
def avro_file(tmp_path: Path) -> str:
    path = tmp_path / "orders.avsc"
    path.write_text(json.dumps(SCHEMA))
    return f"orders={path}"


@pytest.mark.parametrize("header", [b"", REGISTERED])
def test_avro_is_decoded_and_masked(avro_file: str, header: bytes) -> None:
    topic, decoder = load_decoder(avro_file)
    decode_and_mask = DecodeAndMask((parse_rule("$.card"),), {topic: decoder})
    shown = decode_and_mask(record(header + avro_value({"id": 70_000, "card": "4111", "raw": b"\xff"})))
    assert json.loads(shown.value or b"") == {"id": 70_000, "card": HIDDEN, "raw": "/w=="}


def test_a_value_that_does_not_fit_stays_as_it_is_and_is_masked(avro_file: str) -> None:
    topic, decoder = load_decoder(avro_file)
    damaged = b"\xff\xff"
    assert DecodeAndMask((), {topic: decoder})(record(damaged)).value == damaged
    assert DecodeAndMask((parse_rule("$.card"),), {topic: decoder})(record(damaged)).value == HIDDEN.encode()


def test_protobuf_is_decoded_with_and_without_the_header_of_a_registry(tmp_path: Path) -> None:
    file = descriptor_pb2.FileDescriptorProto(name="order.proto", package="shop", syntax="proto3")
    message = file.message_type.add(name="Order")
    label, kind = descriptor_pb2.FieldDescriptorProto.LABEL_OPTIONAL, descriptor_pb2.FieldDescriptorProto.TYPE_STRING
    message.field.add(name="customer_name", number=1, type=kind, label=label)
    path = tmp_path / "order.desc"
    path.write_bytes(descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString())
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    order_type = message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Order"))
    data = order_type(customer_name="Ada").SerializeToString()
    topic, decoder = load_decoder(f"orders={path}:shop.Order")
    decode_and_mask = DecodeAndMask((), {topic: decoder})
    for header in (b"", REGISTERED + b"\0", REGISTERED + b"\x02\x00"):
        assert json.loads(decode_and_mask(record(header + data)).value or b"") == {"customer_name": "Ada"}
    with pytest.raises(SchemaError, match=r"shop\.Missing"):
        load_decoder(f"orders={path}:shop.Missing")


def test_a_schema_that_cannot_be_used_says_why(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.avsc"
    wrong.write_text("{}")
    refused = {"orders": "is not TOPIC=", f"o={wrong}": "not an Avro schema", "o=x.desc": "names no message"}
    for text, words in refused.items():
        with pytest.raises(SchemaError, match=words):
            load_decoder(text)
