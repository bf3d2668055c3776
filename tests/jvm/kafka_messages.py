"""Apache Kafka's generated message classes as an oracle: what they read in our bytes, and what they write for it."""

import base64
import binascii
from typing import Any
from uuid import UUID

from odradek.coordinator.runtime.coordinator_record import CoordinatorRecord
from odradek.protocol.fields import UNSET, Field, includes
from odradek.protocol.schema import Message, Struct
from tests.jvm.json_session import JsonSession

MORE_VERSIONS = {55: (0, 2)}  # that Kafka has: our clients send DescribeQuorum in versions 0 and 1


class MessageSession(JsonSession):
    """One JVM for many messages."""

    def __init__(self) -> None:
        super().__init__("odradek.MessageSession")

    def check(self, class_name: str, message: Message, version: int) -> None:
        """Kafka's class finds the same values under the same names in our bytes, and writes the same bytes."""
        encoded = b"".join(bytes(part) for part in message.encode(version))  # type: ignore[arg-type]  # no slices here
        answer = self.call({"class": class_name, "version": version, "bytes": encoded.hex()})
        assert answer["left"] == 0
        assert answer["values"] == as_kafka_json(message, version)
        assert answer["bytes"] == encoded.hex()

    def check_table(self, class_name: str, message: type[Message], version: int) -> None:
        """The number of the API, its versions, and the default of each field."""
        answer = self.call({"class": class_name, "version": version})
        versions = MORE_VERSIONS.get(message.api_key, message.versions)
        assert (answer["api_key"], tuple(answer["versions"])) == (message.api_key, versions)
        assert answer["values"] == as_kafka_json(message(), version)

    def check_record(self, record: CoordinatorRecord) -> tuple[int, dict[str, Any], dict[str, Any] | None]:
        """Kafka's type of the record and the values in its key and its value; it writes the same bytes for them."""
        value = None if record.value is None else record.value.hex()
        answer = self.call({"key": record.key.hex(), "value": value})
        assert (answer["key_bytes"], answer.get("value_bytes")) == (record.key.hex(), value)
        return answer["type"], answer["key"], answer.get("value")


def as_kafka_json(value: Any, version: int) -> Any:
    """The way of Kafka's own JSON converters: names in camel case, a tagged field only where it is not the default."""
    if isinstance(value, list):
        return [as_kafka_json(item, version) for item in value]
    if isinstance(value, Struct):
        return {
            _camel_case(field.name): as_kafka_json(getattr(value, field.name), version)
            for field in type(value).fields
            if includes(field.versions, version) and not _is_left_out(field, getattr(value, field.name), version)
        }
    if isinstance(value, UUID):
        return base64.urlsafe_b64encode(value.bytes).decode().rstrip("=")
    return binascii.b2a_base64(value, newline=False).decode() if isinstance(value, bytes) else value


def _is_left_out(field: Field, value: Any, version: int) -> bool:
    if not includes(field.tagged, version):
        return False
    if field.default is UNSET:
        element: Any = field.element
        return bool(value == ([] if field.kind == "array" else element()))
    return bool(value == field.default)


def _camel_case(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))
