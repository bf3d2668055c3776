"""Records as they are shown: values in Avro or Protobuf decoded to JSON, then masked by rules that hide parts. Pure,
but for schemas, which are read from files.

`orders=orders.avsc` is the Avro schema of a topic's values; `orders=orders.desc:shop.Order` a message of a descriptor
set (`protoc --include_imports --descriptor_set_out=orders.desc orders.proto`). The header that clients of a schema
registry write before a value (a zero byte and the schema's id; for Protobuf also the index of the message) is skipped.

A rule is `key`, `header:NAME`, or a JSON path into the value, such as `$.card.number` or `$..password`. Records are
masked before anything else looks at them, so that pages, search and export agree.

What a path may miss is hidden: with a rule for values, a value that is no JSON object or list is hidden as a whole,
because nothing says where in it the field would be. So is an element of another type than the path expects
(`$.card.pin` hides the card if it is a text), and for `$..pin` each text with JSON that has the name inside. The reason
of a dead letter is reduced to its kind, because its details are an excerpt of the value.
"""

from __future__ import annotations

import base64
import contextlib
import io
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odradek.console.records import json_path
from odradek.conventions.dataclass import dataclass
from odradek.pipelines.letters.letter import REASON_HEADER

if TYPE_CHECKING:
    from odradek.console.records.record import Record

HIDDEN = "•••"
HEADER_PREFIX = "header:"


@dataclass(frozen=True, slots=True)
class MaskRule:
    """Exactly one of the fields says what is hidden."""

    text: str
    hides_key: bool = False
    header: str | None = None
    path: json_path.JsonPath | None = None


def parse_rule(text: str) -> MaskRule:
    """PathError for anything else than `key`, `header:NAME` and a JSON path."""
    if text == "key":
        return MaskRule(text, hides_key=True)
    if text.startswith(HEADER_PREFIX) and len(text) > len(HEADER_PREFIX):
        return MaskRule(text, header=text.removeprefix(HEADER_PREFIX))
    if text.startswith("$"):
        return MaskRule(text, path=json_path.parse_path(text))
    expected = "write key, header:NAME or a JSON path such as $.card.number"
    raise json_path.PathError(f"{text!r} is not a masking rule; {expected}")


def mask(record: Record, rules: Iterable[MaskRule]) -> Record:
    """The record without what the rules hide."""
    rules = tuple(rules)
    if any(rule.hides_key for rule in rules) and record.key is not None:
        record = record._replace(key=HIDDEN.encode())
    paths = [rule.path for rule in rules if rule.path is not None]
    if paths and record.headers:
        record = record._replace(headers=tuple((name, _mask_reason(name, value)) for name, value in record.headers))
    hidden = {rule.header.casefold() for rule in rules if rule.header is not None}
    if hidden:
        shown = ((name, HIDDEN.encode() if name.casefold() in hidden else value) for name, value in record.headers)
        record = record._replace(headers=tuple(shown))
    if paths and record.value is not None:
        record = record._replace(value=_mask_value(record.value, paths))
    return record


def _mask_reason(name: str, value: bytes | None) -> bytes | None:
    if name != REASON_HEADER or value is None:
        return value
    return value.partition(b":")[0].strip()


def _mask_value(value: bytes, paths: Iterable[json_path.JsonPath]) -> bytes:
    document = json_path.parse_json(value)
    if document is json_path.NOT_JSON:
        return HIDDEN.encode()
    root = [document]
    if document is not None and not isinstance(document, dict | list):
        root = [HIDDEN]
    for path in paths:
        for found in _hidden_locations(root, path):
            found.container[found.key] = HIDDEN
    try:
        return json_path.write_json(root[0], separators=(",", ":")).encode()
    except RecursionError:
        return HIDDEN.encode()


def _hidden_locations(root: list[Any], path: json_path.JsonPath) -> list[json_path.Location]:
    """Where the path leads to, and where it ends too early."""
    found = [json_path.Location(root, 0)]
    missed: list[json_path.Location] = []
    for step in path:
        if step.is_anywhere:
            below = json_path.all_below([each.value for each in found])
            missed += [each for each in (*found, *below) if _has_inside(each.value, step)]
        else:
            missed += [each for each in found if each.value is not None and not json_path.can_have(each.value, step)]
        found = json_path.take_step([each.value for each in found], step)
    return found + missed


def _has_inside(text: Any, step: json_path.Step) -> bool:
    """Whether a text is JSON with the step's name at any depth, also in texts inside; or JSON that was cut."""
    if not isinstance(text, str) or text.lstrip()[:1] not in ("{", "[", '"'):
        return False
    document = json_path.parse_json(text.encode(errors="surrogatepass"))
    if document is json_path.NOT_JSON:
        return '"' in text
    inner = [each.value for each in json_path.all_below([document])]
    return bool(json_path.take_step([document], step)) or any(_has_inside(each, step) for each in (document, *inner))


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
    from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory  # type: ignore[import-untyped]  # noqa: PLC0415 - optional, without types

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
                record = record._replace(value=decoder(record.value))
        return mask(record, self.masks)

    def changes(self, topic: str) -> bool:
        """Whether records of the topic are shown in another form than they were written."""
        return bool(self.masks) or topic in self.decoders
