"""Every message table of the protocol room, and Hypothesis strategies that are derived from the tables themselves."""

import importlib
import pkgutil
from typing import Any
from uuid import UUID

from hypothesis import strategies as st

import odradek.protocol.messages
from odradek.protocol.fields import Field, includes
from odradek.protocol.schema import Message, Request, Response, Struct

INTEGER_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}


def load_messages() -> list[type[Message]]:
    modules = [
        importlib.import_module(f"odradek.protocol.messages.{module.name}")
        for module in pkgutil.iter_modules(odradek.protocol.messages.__path__)
    ]
    named = [value for module in modules for value in vars(module).values() if isinstance(value, type)]
    return [value for value in named if issubclass(value, Message) and value not in {Message, Request, Response}]


MESSAGES = load_messages()
CASES = [(message, version) for message in MESSAGES for version in range(message.versions[0], message.versions[1] + 1)]
CASE_NAMES = [f"{message.__name__}-{version}" for message, version in CASES]

# Consumer groups, transactions, requests between brokers: its wheel has no schema of some of their versions.
# Tagged fields that Kafka does not have, by struct: Kafka skips them.
OWN_FIELDS = {"EnvelopeResponse": {"metadata_version"}, "BrokerHeartbeatRequest": {"offline_replicas"}}
OWN_APIS = set(range(10001, 10007))  # Kafka has no such APIs
NOT_IN_KAFKA_PYTHON = {24, 25, 26, 27, 28, 38, 39, 40, 41, 55, 56, 58, 61, 63, 64, 65, 66, 67, 68, 69, 71, 72}


def join(message: Message, version: int) -> bytes:
    return b"".join(bytes(part) for part in message.encode(version))  # type: ignore[arg-type]  # no slices here


def structs(struct_type: type[Struct], version: int) -> st.SearchStrategy[Any]:
    """Structs that this version can carry: fields that it does not have stay at their defaults."""
    values = {
        field.name: field_values(field, version)
        for field in struct_type.fields
        if includes(field.versions, version) and field.name not in OWN_FIELDS.get(struct_type.__name__, ())
    }
    return st.builds(struct_type, **values)


def field_values(field: Field, version: int) -> st.SearchStrategy[Any]:
    values = present_values(field, version)
    return st.none() | values if includes(field.nullable, version) else values


def present_values(field: Field, version: int) -> st.SearchStrategy[Any]:
    if field.kind in INTEGER_BITS:
        bound = 1 << INTEGER_BITS[field.kind] - 1
        return st.integers(-bound, bound - 1)
    if field.kind == "array":
        return st.lists(elements(field.element, version), max_size=3)
    if field.kind == "struct":
        return elements(field.element, version)
    simple: dict[str, st.SearchStrategy[Any]] = {
        "float64": st.floats(allow_nan=False),
        "boolean": st.booleans(),
        "uuid": st.uuids() | st.just(UUID(int=0)),
        # Lengths on both sides of where a compact length takes another byte.
        "string": st.text(max_size=9) | st.integers(125, 129).map("x".__mul__),
        "bytes": st.binary(max_size=9),
        "records": st.binary(max_size=9) | st.integers(125, 129).map(bytes),
    }
    return simple[field.kind]


def elements(element: Any, version: int) -> st.SearchStrategy[Any]:
    return field_values(element, version) if isinstance(element, Field) else structs(element, version)
