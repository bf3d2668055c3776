"""Values in Avro or Protobuf as JSON, by schemas from files; and the first step after reading any record.

`orders=orders.avsc` is the Avro schema of a topic's values; `orders=orders.desc:shop.Order` a message of a descriptor
set (`protoc --include_imports --descriptor_set_out=orders.desc orders.proto`). The header that clients of a schema
registry write before a value (a zero byte and the schema's id; for Protobuf also the index of the message) is skipped.
"""

from __future__ import annotations

import base64
import contextlib
import io
import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odradek.console.records.masking import MaskRule, mask

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.console.records.record import Record

Decoder = Callable[[bytes], bytes]  # raises an exception if the value does not fit the schema

REGISTRY_MAGIC = b"\0"
REGISTRY_HEADER_BYTES = 5


class SchemaError(ValueError):
    """A schema that cannot be used; the message says why."""


def load_decoder(text: str) -> tuple[str, Decoder]:
    """The topic and the decoder of `TOPIC=FILE.avsc` or `TOPIC=FILE.desc:MESSAGE`."""
    topic, equals, location = text.partition("=")
    if not equals or not topic or not location:
        raise SchemaError(f"{text!r} is not TOPIC=FILE.avsc or TOPIC=FILE.desc:MESSAGE")
    try:
        if location.endswith(".avsc"):
            return topic, avro_decoder(Path(location).read_text())
        path, _, message = location.rpartition(":")
        if not path or not message:
            raise SchemaError(f"{text!r} names no message; write TOPIC=FILE.desc:MESSAGE")
        return topic, protobuf_decoder(Path(path).read_bytes(), message)
    except OSError as error:
        raise SchemaError(f"{location}: {(error.strerror or str(error)).lower()}") from None
    except ModuleNotFoundError as error:
        package = {"fastavro": "fastavro"}.get(error.name or "", "protobuf")
        raise SchemaError(f"{location} needs the package {package}: pip install {package}") from None


def avro_decoder(schema: str) -> Decoder:
    import fastavro  # noqa: PLC0415 - an optional package

    try:
        parsed = fastavro.parse_schema(json.loads(schema))
    except Exception as error:
        raise SchemaError(f"not an Avro schema: {error}") from None

    def decode(value: bytes) -> bytes:
        document = fastavro.schemaless_reader(io.BytesIO(_without_header(value)), parsed, None)
        return json.dumps(document, ensure_ascii=False, default=_plain).encode()

    return decode


def protobuf_decoder(descriptor_set: bytes, name: str) -> Decoder:
    from google.protobuf import (  # type: ignore[import-untyped]  # noqa: PLC0415 - optional, without types
        descriptor_pb2,
        descriptor_pool,
        json_format,
        message_factory,
    )

    pool = descriptor_pool.DescriptorPool()
    try:
        for file in descriptor_pb2.FileDescriptorSet.FromString(descriptor_set).file:
            pool.Add(file)
        kind = message_factory.GetMessageClass(pool.FindMessageTypeByName(name))
    except Exception as error:
        raise SchemaError(f"not a descriptor set with the message {name}: {error}") from None

    def decode(value: bytes) -> bytes:
        data = _without_header(value)
        if data is not value:
            data = _without_message_index(data)
        fields = json_format.MessageToDict(kind.FromString(data), preserving_proto_field_name=True)
        return json.dumps(fields, ensure_ascii=False).encode()

    return decode


def _without_header(value: bytes) -> bytes:
    is_registered = value[:1] == REGISTRY_MAGIC and len(value) >= REGISTRY_HEADER_BYTES
    return value[REGISTRY_HEADER_BYTES:] if is_registered else value


def _without_message_index(data: bytes) -> bytes:
    """A count and so many numbers, as zigzag varints; a count of zero stands for the first message."""
    count, position = _varint(data, 0)
    for _ in range(min(count, len(data))):
        _, position = _varint(data, position)
    return data[position:]


def _varint(data: bytes, position: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[position]
        position += 1
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80 or shift > 63:
            return (number >> 1) ^ -(number & 1), position


def _plain(value: Any) -> Any:
    """Values of Avro's logical types, and bytes."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


@dataclass(frozen=True, slots=True)
class DecodeAndMask:
    """Decodes a record by the schema of its topic, then masks it."""

    masks: tuple[MaskRule, ...] = ()
    decoders: Mapping[str, Decoder] = field(default_factory=dict)  # by topic

    def __call__(self, record: Record) -> Record:
        """A value that does not fit the schema stays as it is."""
        decoder = self.decoders.get(record.topic)
        if decoder is not None and record.value:
            with contextlib.suppress(Exception):
                record = replace(record, value=decoder(record.value))
        return mask(record, self.masks)

    def changes(self, topic: str) -> bool:
        """Whether records of the topic are shown in another form than they were written."""
        return bool(self.masks) or topic in self.decoders
