"""The tables say the same as an independent implementation, kafka-python: field by field, and byte by byte.

Its wheel carries Kafka's schemas and has a codec of its own. It lacks the newer consumer groups, which
`test_messages_against_kafka` compares instead, and no other API or version of ours; InitProducerId 6, which Kafka holds
back as unstable, it has and we have not.
"""

import io
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from odradek.protocol.fields import UNSET, Field, includes
from odradek.protocol.schema import Message, Struct
from tests.example_counts import examples
from tests.protocol import tables
from tests.protocol.kafka_python import codec_of, schema_of
from tests.protocol.tables import NOT_IN_KAFKA_PYTHON, OWN_APIS, join, structs

# Kafka 4.3 marks the last version of these as unstable: it is neither advertised by Kafka nor in our table.
HELD_BACK = {"InitProducerIdRequest", "InitProducerIdResponse"}
MESSAGES = [message for message in tables.MESSAGES if message.api_key not in NOT_IN_KAFKA_PYTHON | OWN_APIS]
CASES = [(message, version) for message, version in tables.CASES if message in MESSAGES]
CASE_NAMES = [f"{message.__name__}-{version}" for message, version in CASES]
ZERO_UUID = UUID(int=0)
FEW = settings(max_examples=examples(2), deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message.__name__)
def test_api_key_and_versions_are_the_same(message: type[Message]) -> None:
    schema = schema_of(message.__name__)
    first, _, last = schema["validVersions"].partition("-")
    held_back = 1 if message.__name__ in HELD_BACK else 0
    assert message.api_key == schema["apiKey"]
    assert message.versions == (int(first), int(last or first) - held_back)
    flexible = "none" if message.flexible_from is None else f"{message.flexible_from}+"
    assert flexible == schema["flexibleVersions"]
    assert message.__mro__[1].__name__.lower() == schema["type"]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message.__name__)
def test_each_version_has_the_same_fields(message: type[Message]) -> None:
    fields = schema_of(message.__name__)["fields"]
    for version in range(message.versions[0], message.versions[1] + 1):
        assert our_fields(message, version) == their_fields(fields, version), version


def our_fields(struct_type: type[Struct], version: int) -> list[Any]:
    """Name, type, null allowed, tag, default and fields within, in order."""
    described = []
    for field in struct_type.fields:
        if includes(field.versions, version):
            element: Any = field.element
            kind, within = field.kind, []
            if isinstance(element, Field):
                kind = f"[]{element.kind}"
            elif element is not None:
                kind = "[]struct" if field.kind == "array" else "struct"
                within = our_fields(element, version)
            tag = field.tag if includes(field.tagged, version) else None
            default: Any = field.default
            if default is UNSET:
                default = [] if field.kind == "array" else "defaults"
            described.append((field.name, kind, includes(field.nullable, version), tag, default, within))
    return described


def their_fields(fields: list[dict[str, Any]], version: int) -> list[Any]:
    described = []
    for field in fields:
        if includes(field["versions"], version):
            name = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in field["name"])
            is_array = field["type"].startswith("[]")
            kind = "struct" if "fields" in field else {"bool": "boolean"}.get(field["type"].strip("[]"), field["type"])
            kind = f"[]{kind.strip('[]')}" if is_array else kind
            tag = field["tag"] if includes(field.get("taggedVersions"), version) else None
            within = their_fields(field.get("fields", []), version)
            nullable = includes(field.get("nullableVersions"), version)
            described.append((name.removeprefix("_"), kind, nullable, tag, their_default(field, kind), within))
    return described


def their_default(field: dict[str, Any], kind: str) -> Any:
    text = str(field.get("default", ""))
    if text == "null" or kind == "records":
        return None
    if kind.startswith("[]"):
        return []
    of_kind: dict[str, Any] = {
        "string": text,
        "bytes": text.encode(),
        "boolean": text.lower() == "true",
        "float64": 0.0,
        "uuid": ZERO_UUID,
        "struct": "defaults",
    }
    return of_kind[kind] if kind in of_kind else int(text or "0", 0)


@pytest.mark.more
@pytest.mark.parametrize(("message", "version"), CASES, ids=CASE_NAMES)
@FEW
@given(data=st.data())
def test_each_side_writes_the_same_bytes_and_reads_the_other(
    message: type[Message], version: int, data: st.DataObject
) -> None:
    ours = data.draw(structs(message, version))
    codec = codec_of(message.__name__)
    flexible = message.is_flexible(version)
    encoded = join(ours, version)
    assert message.decode(memoryview(encoded), 0, version) == ours
    assert codec.encode(as_dictionary(ours, version), version=version, compact=flexible, tagged=flexible) == encoded
    theirs = codec.decode(io.BytesIO(encoded), version=version, compact=flexible, tagged=flexible)
    assert_same_values(ours, theirs, version)


def as_dictionary(value: Any, version: int) -> Any:
    """What kafka-python's codec takes. It writes every tagged field that it is given, so defaults are left out."""
    if isinstance(value, list):
        return [as_dictionary(item, version) for item in value]
    if not isinstance(value, Struct):
        return value
    return {
        field.name: as_dictionary(getattr(value, field.name), version)
        for field in type(value).fields
        if includes(field.versions, version)
        and not (includes(field.tagged, version) and is_default(field, getattr(value, field.name)))
    }


def is_default(field: Field, value: Any) -> bool:
    if field.default is not UNSET:
        return bool(value == field.default)
    element: Any = field.element
    return bool(value == ([] if field.kind == "array" else element()))


def assert_same_values(ours: Any, theirs: Any, version: int) -> None:
    if isinstance(ours, list):
        assert len(ours) == len(theirs)
        for our_item, their_item in zip(ours, theirs, strict=True):
            assert_same_values(our_item, their_item, version)
    elif isinstance(ours, Struct):
        for field in type(ours).fields:
            our_value = getattr(ours, field.name)
            if includes(field.versions, version) and not (
                includes(field.tagged, version) and is_default(field, our_value)
            ):
                assert_same_values(our_value, value_in(theirs, field.name), version)
    else:
        # A UUID of zeros is None over there.
        assert ours == (ZERO_UUID if theirs is None and isinstance(ours, UUID) else theirs)


def value_in(container: Any, name: str) -> Any:
    return container[name] if isinstance(container, dict) else getattr(container, name)
