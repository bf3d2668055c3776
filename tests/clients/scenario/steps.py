"""A step of the scenario: a verb that every client's driver knows, and its arguments. The right answers are recorded
in expected/scenario.

Arguments and answers are JSON, so that drivers in Java and Go read and write the same steps. Bytes are text in Latin-1
(one character is one byte); `{"fill": "x", "length": n}` is n bytes of x; answers give bytes past LONG_BYTES by length
and CRC.
"""

import zlib
from dataclasses import dataclass, field
from typing import Any

Json = Any

EPOCH_MS = 1_600_000_000_000  # September 2020: never confused with the time of the run, which answers show as NOW
FAR_FUTURE_MS = 4_102_444_800_000
NOW = "the time of the run"
LONG_BYTES = 100
KEEP_FOREVER = {"retention.ms": "-1"}  # records of 2020 would otherwise be deleted by retention while the scenario runs

COPY_PREFIX = b"copy of "  # what the verb `copy` puts before a value

DONE = {"error": "NONE"}
CONFIG_SOURCES = (  # by Kafka's numbers
    "UNKNOWN",
    "DYNAMIC_TOPIC_CONFIG",
    "DYNAMIC_BROKER_CONFIG",
    "DYNAMIC_DEFAULT_BROKER_CONFIG",
    "STATIC_BROKER_CONFIG",
    "DEFAULT_CONFIG",
)


@dataclass(frozen=True, slots=True)
class Step:
    name: str
    verb: str
    arguments: dict[str, Json] = field(default_factory=dict)


def record(
    value: Json,
    *,
    key: str | None = None,
    headers: list[tuple[str, str | None]] | None = None,
    timestamp: int | None = None,
) -> dict[str, Json]:
    """A record to be produced; without a timestamp the client takes the wall clock."""
    return {"key": key, "value": value, "headers": [list(each) for each in headers or []], "timestamp": timestamp}


def written_bytes(value: Json) -> bytes | None:
    """The bytes that a step's argument stands for."""
    if value is None:
        return None
    if isinstance(value, dict):
        filled: bytes = value["fill"].encode("latin-1") * value["length"]
        return filled
    encoded: bytes = value.encode("latin-1")
    return encoded


def shown_bytes(data: bytes | None) -> Json:
    """How an answer shows bytes."""
    if data is None:
        return None
    if len(data) > LONG_BYTES:
        return {"length": len(data), "crc32": zlib.crc32(data)}
    return data.decode("latin-1")
