"""Changes as bytes: the one format in which every metadata store keeps commits and snapshots. Pure.

A version byte, then the changes, each a tag byte and its fields in network byte order. Texts are UTF-8 behind a 32-bit
length. `MalformedMessage` for anything else; counts and lengths are compared with the bytes present before they are
used. `partition_codec` has the format of partitions, of which one commit may hold tens of thousands.
"""

from __future__ import annotations

import struct
import uuid
from typing import TYPE_CHECKING, TypeVar, assert_never, overload

from odradek.configuration.config_types import ConfigResourceType
from odradek.configuration.listeners import Endpoint
from odradek.metadata import changes as change_types
from odradek.metadata.entities import BrokerImage, TopicImage
from odradek.metadata.partition_codec import decode_partitions, encode_partitions
from odradek.metadata.streams import StreamImage
from odradek.metadata.topic_names import is_internal
from odradek.metadata.user_codec import USER_TAGS, decode_user_change, encode_user_change
from odradek.protocol.malformed import MalformedMessage
from odradek.security.acls.bindings import AclBinding, PatternType, Permission
from odradek.security.authorizer import Operation, ResourceType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from odradek.metadata.changes import Change
    from odradek.metadata.entities import PartitionImage

CODEC_VERSION = 1

_TOPIC_CREATED = 1
_TOPIC_DELETED = 2
_PARTITIONS_ADDED = 3
_PARTITIONS_CHANGED = 4
_CONFIGS_CHANGED = 5
_CLIENT_QUOTA_CHANGED = 6
_PRODUCER_IDS_ALLOCATED = 7
_BROKER_REGISTERED = 8
_BROKER_REMOVED = 9
_CONTROLLER_ELECTED = 10
_ACLS_ADDED = 11
_ACLS_REMOVED = 12
_FEATURE_LEVEL_CHANGED = 17
_STREAM_CHANGED = 18
_STREAM_DELETED = 19

_INT32 = struct.Struct(">i")
_INT64 = struct.Struct(">q")
_DOUBLE = struct.Struct(">d")
_COUNT = struct.Struct(">I")
_UUID_BYTES = 16
_TOPIC_HEADER = struct.Struct(">16sI")  # the id and the length of the name
_FEATURE_HEADER = struct.Struct(">Bi")  # the tag and the level
_ABSENT, _PRESENT = 0, 1
_FENCED, _SHUTTING_DOWN = 1, 2  # flags of a broker

V = TypeVar("V")


@overload
def encode_changes(changes: Iterable[Change]) -> bytes: ...


@overload
def encode_changes(changes: Iterable[Change], limit_bytes: int) -> bytes | None: ...


def encode_changes(changes: Iterable[Change], limit_bytes: int | None = None) -> bytes | None:
    """None when the encoded changes take more than `limit_bytes`; encoding stops at the change that passes it."""
    out = bytearray((CODEC_VERSION,))
    for change in changes:
        _encode_change(out, change)
        if limit_bytes is not None and len(out) > limit_bytes:
            return None
    return bytes(out)


def decode_changes(data: bytes) -> list[Change]:
    if not data:
        raise MalformedMessage("encoded changes are empty")
    if data[0] != CODEC_VERSION:
        raise MalformedMessage(f"changes are encoded in version {data[0]}; this broker knows {CODEC_VERSION}")
    reader = _Reader(data, 1)
    changes: list[Change] = []
    try:
        while reader.position < len(data):
            changes.append(_decode_change(reader))
    except (struct.error, ValueError) as problem:
        if isinstance(problem, MalformedMessage):
            raise
        raise MalformedMessage(f"change {len(changes)} is malformed: {problem}") from problem
    return changes


def _encode_change(out: bytearray, change: Change) -> None:  # noqa: C901, PLR0912, PLR0915 - a case for each kind
    match change:
        case change_types.TopicCreated(topic):
            out.append(_TOPIC_CREATED)
            out += topic.topic_id.bytes
            _put_text(out, topic.name)
            encode_partitions(out, topic.partitions)
        case change_types.TopicDeleted(topic_id):
            out.append(_TOPIC_DELETED)
            out += topic_id.bytes
        case change_types.PartitionsAdded(topic_id, partitions):
            out.append(_PARTITIONS_ADDED)
            out += topic_id.bytes
            encode_partitions(out, partitions)
        case change_types.PartitionsChanged(topic_id, partitions):
            out.append(_PARTITIONS_CHANGED)
            out += topic_id.bytes
            encode_partitions(out, partitions)
        case change_types.StreamChanged(stream):
            out.append(_STREAM_CHANGED)
            _put_stream(out, stream)
        case change_types.StreamDeleted(stream_id):
            out.append(_STREAM_DELETED)
            out += stream_id.bytes
        case change_types.ConfigsChanged(resource_type, resource_name, values):
            out += bytes((_CONFIGS_CHANGED, resource_type))
            _put_text(out, resource_name)
            _put_values(out, values, _put_text)
        case change_types.ClientQuotaChanged(entity, quotas):
            out.append(_CLIENT_QUOTA_CHANGED)
            _put_values(out, dict(sorted(entity, key=lambda part: part[0])), _put_text)
            _put_values(out, quotas, _put_double)
        case change_types.ProducerIdsAllocated(next_producer_id):
            out.append(_PRODUCER_IDS_ALLOCATED)
            out += _INT64.pack(next_producer_id)
        case change_types.BrokerRegistered(broker):
            out.append(_BROKER_REGISTERED)
            _put_broker(out, broker)
        case change_types.BrokerRemoved(node_id, broker_epoch):
            out.append(_BROKER_REMOVED)
            out += _INT32.pack(node_id) + _INT64.pack(broker_epoch)
        case change_types.ControllerElected(controller_id, controller_epoch):
            out.append(_CONTROLLER_ELECTED)
            out += _INT32.pack(controller_id) + _INT32.pack(controller_epoch)
        case _ if isinstance(change, change_types.UserChange):
            encode_user_change(out, change)
        case change_types.AclsAdded(bindings):
            out.append(_ACLS_ADDED)
            _put_acls(out, bindings)
        case change_types.AclsRemoved(bindings):
            out.append(_ACLS_REMOVED)
            _put_acls(out, bindings)
        case change_types.FeatureLevelChanged(name, level):
            out += _FEATURE_HEADER.pack(_FEATURE_LEVEL_CHANGED, level)
            _put_text(out, name)
        case _:
            assert_never(change)


def _put_text(out: bytearray, text: str) -> None:
    encoded = text.encode()
    out += _COUNT.pack(len(encoded))
    out += encoded


def _put_optional_text(out: bytearray, text: str | None) -> None:
    out.append(_ABSENT if text is None else _PRESENT)
    if text is not None:
        _put_text(out, text)


def _put_double(out: bytearray, value: float) -> None:
    out += _DOUBLE.pack(value)


def _put_values(out: bytearray, values: Mapping[str, V | None], put: Callable[[bytearray, V], None]) -> None:
    out += _COUNT.pack(len(values))
    for name, value in values.items():
        _put_text(out, name)
        out.append(_ABSENT if value is None else _PRESENT)
        if value is not None:
            put(out, value)


def _put_broker(out: bytearray, broker: BrokerImage) -> None:
    out += _INT32.pack(broker.node_id) + _INT64.pack(broker.broker_epoch)
    out.append(_FENCED * broker.is_fenced | _SHUTTING_DOWN * broker.is_shutting_down)
    _put_optional_text(out, broker.rack)
    out += _COUNT.pack(len(broker.endpoints))
    for listener, endpoint in broker.endpoints.items():
        _put_text(out, listener)
        _put_text(out, endpoint.host)
        out += _INT32.pack(endpoint.port)


def _put_stream(out: bytearray, stream: StreamImage) -> None:
    out += stream.stream_id.bytes + _INT32.pack(stream.default_partitions)
    out.append(_PRESENT if stream.creates_topics else _ABSENT)
    _put_text(out, stream.path)
    _put_text(out, stream.owner)
    for texts in (stream.settings, stream.permissions):
        out += _COUNT.pack(len(texts))
        for name, text in texts.items():
            _put_text(out, name)
            _put_text(out, text)


def _put_acls(out: bytearray, bindings: tuple[AclBinding, ...]) -> None:
    out += _COUNT.pack(len(bindings))
    for binding in bindings:
        out += bytes((binding.resource_type, binding.pattern_type, binding.operation, binding.permission))
        _put_text(out, binding.resource_name)
        _put_text(out, binding.principal)
        _put_text(out, binding.host)


def _decode_change(reader: _Reader) -> Change:  # noqa: C901, PLR0912 - one case for each kind of change
    tag = reader.byte()
    if tag == _TOPIC_CREATED:
        return change_types.TopicCreated(reader.topic())
    if tag == _TOPIC_DELETED:
        return change_types.TopicDeleted(reader.uuid())
    if tag == _PARTITIONS_ADDED:
        return change_types.PartitionsAdded(reader.uuid(), reader.partitions())
    if tag == _PARTITIONS_CHANGED:
        return change_types.PartitionsChanged(reader.uuid(), reader.partitions())
    if tag == _STREAM_CHANGED:
        return change_types.StreamChanged(reader.stream())
    if tag == _STREAM_DELETED:
        return change_types.StreamDeleted(reader.uuid())
    if tag == _CONFIGS_CHANGED:
        resource_type = ConfigResourceType(reader.byte())
        return change_types.ConfigsChanged(resource_type, reader.text(), reader.values(reader.text))
    if tag == _CLIENT_QUOTA_CHANGED:
        entity = frozenset(reader.values(reader.text).items())
        return change_types.ClientQuotaChanged(entity, reader.values(reader.double))
    if tag == _PRODUCER_IDS_ALLOCATED:
        return change_types.ProducerIdsAllocated(reader.int64())
    if tag == _BROKER_REGISTERED:
        return change_types.BrokerRegistered(reader.broker())
    if tag == _BROKER_REMOVED:
        return change_types.BrokerRemoved(reader.int32(), reader.int64())
    if tag == _CONTROLLER_ELECTED:
        return change_types.ControllerElected(reader.int32(), reader.int32())
    if tag in USER_TAGS:
        return decode_user_change(tag, reader)
    if tag == _ACLS_ADDED:
        return change_types.AclsAdded(reader.acls())
    if tag == _ACLS_REMOVED:
        return change_types.AclsRemoved(reader.acls())
    if tag == _FEATURE_LEVEL_CHANGED:
        level = reader.int32()
        return change_types.FeatureLevelChanged(reader.text(), level)
    raise MalformedMessage(f"{tag} is not the tag of a change; a newer version of Odradek may have written it: upgrade")


class _Reader:
    """The next field of some encoded changes. Short data raises `struct.error` or `MalformedMessage`."""

    __slots__ = ("_data", "position")

    def __init__(self, data: bytes, position: int) -> None:
        self._data = data
        self.position = position

    def byte(self) -> int:
        (value,) = self._take(1)
        return value

    def flag(self) -> bool:
        value = self.byte()
        if value > 1:
            raise MalformedMessage(f"{value} is not a flag")
        return value == _PRESENT

    def int32(self) -> int:
        return int.from_bytes(self._take(4), "big", signed=True)

    def int64(self) -> int:
        return int.from_bytes(self._take(8), "big", signed=True)

    def double(self) -> float:
        (value,) = _DOUBLE.unpack(self._take(8))
        return float(value)

    def uuid(self) -> uuid.UUID:
        return uuid.UUID(bytes=self._take(_UUID_BYTES))

    def text(self) -> str:
        return self.binary().decode()

    def binary(self) -> bytes:
        return self._take(int.from_bytes(self._take(4), "big"))

    def optional_text(self) -> str | None:
        return self.text() if self.flag() else None

    def values(self, read: Callable[[], V]) -> dict[str, V | None]:
        values: dict[str, V | None] = {}
        for _ in range(self.count(smallest_bytes=5)):
            name = self.text()
            values[name] = read() if self.flag() else None
        return values

    def topic(self) -> TopicImage:
        topic_id, name_size = _TOPIC_HEADER.unpack_from(self._data, self.position)
        self.position += _TOPIC_HEADER.size
        name = self._take(name_size).decode()
        return TopicImage(name, uuid.UUID(bytes=topic_id), self.partitions(), is_internal(name))

    def partitions(self) -> tuple[PartitionImage, ...]:
        partitions, self.position = decode_partitions(self._data, self.position)
        return partitions

    def broker(self) -> BrokerImage:
        node_id, broker_epoch, flags, rack = self.int32(), self.int64(), self.byte(), self.optional_text()
        if flags > _FENCED | _SHUTTING_DOWN:
            raise MalformedMessage(f"broker {node_id} has unknown flags {flags}")
        endpoints = {}
        for _ in range(self.count(smallest_bytes=12)):
            listener = self.text()
            endpoints[listener] = Endpoint(self.text(), self.int32())
        is_fenced, is_shutting_down = bool(flags & _FENCED), bool(flags & _SHUTTING_DOWN)
        return BrokerImage(node_id, endpoints, rack, broker_epoch, is_fenced, is_shutting_down)

    def stream(self) -> StreamImage:
        stream_id, default_partitions, creates_topics = self.uuid(), self.int32(), self.flag()
        return StreamImage(
            path=self.text(),
            stream_id=stream_id,
            owner=self.text(),
            default_partitions=default_partitions,
            creates_topics=creates_topics,
            settings=self._texts(),
            permissions=self._texts(),
        )

    def _texts(self) -> dict[str, str]:
        return {self.text(): self.text() for _ in range(self.count(smallest_bytes=8))}

    def acls(self) -> tuple[AclBinding, ...]:
        return tuple(self._acl() for _ in range(self.count(smallest_bytes=16)))

    def _acl(self) -> AclBinding:
        resource_type, pattern_type, operation, permission = self._take(4)
        return AclBinding(
            ResourceType(resource_type),
            self.text(),
            PatternType(pattern_type),
            self.text(),
            self.text(),
            Operation(operation),
            Permission(permission),
        )

    def count(self, smallest_bytes: int) -> int:
        count = int.from_bytes(self._take(4), "big")
        if count * smallest_bytes > len(self._data) - self.position:
            raise MalformedMessage(f"{count} entries do not fit into the rest of the data")
        return count

    def _take(self, size: int) -> bytes:
        end = self.position + size
        if end > len(self._data):
            raise MalformedMessage(f"{size} bytes are missing at position {self.position}")
        taken = self._data[self.position : end]
        self.position = end
        return taken
