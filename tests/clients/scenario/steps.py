"""What one step of the scenario is: a verb that every client's driver knows, its arguments, and the right answer.

Arguments and answers are JSON, so that drivers in Java and Go read and write the same steps. Bytes are text in Latin-1
(one character is one byte); `{"fill": "x", "length": n}` is n bytes of x; answers give bytes past LONG_BYTES by length
and CRC.
"""

import zlib
from dataclasses import dataclass, field
from typing import Any

Json = Any

EPOCH_MS = 1_600_000_000_000  # September 2020: never confused with the time of the run, which is normalised to NOW
FAR_FUTURE_MS = 4_102_444_800_000
NOW = "the time of the run"
LONG_BYTES = 100
KEEP_FOREVER = {"retention.ms": "-1"}  # records of 2020 would otherwise be deleted by retention while the scenario runs

DONE = {"error": "NONE"}
CONFIG_SOURCES = (  # by Kafka's numbers
    "UNKNOWN",
    "DYNAMIC_TOPIC_CONFIG",
    "DYNAMIC_BROKER_CONFIG",
    "DYNAMIC_DEFAULT_BROKER_CONFIG",
    "STATIC_BROKER_CONFIG",
    "DEFAULT_CONFIG",
)


def refused(error: str) -> Json:
    return {"error": error}


@dataclass(frozen=True, slots=True)
class Step:
    name: str
    verb: str
    arguments: dict[str, Json] = field(default_factory=dict)
    expected: Json = None


def record(
    value: Json,
    *,
    key: str | None = None,
    headers: list[tuple[str, str | None]] | None = None,
    timestamp: int | None = None,
) -> dict[str, Json]:
    """A record to be produced; without a timestamp the client takes the wall clock."""
    return {"key": key, "value": value, "headers": [list(each) for each in headers or []], "timestamp": timestamp}


def consumed(
    offset: int, sent: dict[str, Json], *, partition: int = 0, timestamp_type: str = "CREATE_TIME", **changed: Json
) -> dict[str, Json]:
    """How a consumer sees the record `sent` at `offset`."""
    seen = {
        "partition": partition,
        "offset": offset,
        "timestamp": NOW if sent["timestamp"] is None else sent["timestamp"],
        "timestamp_type": timestamp_type,
        "key": sent["key"],
        "value": _as_answered(sent["value"]),
        "headers": sent["headers"],
        "leader_epoch": 0,
    }
    return {**seen, **changed}


def offsets(first: int, count: int) -> list[dict[str, Json]]:
    """What a producer learns about `count` acknowledged records."""
    return [{"offset": first + each} for each in range(count)]


def _as_answered(value: Json) -> Json:
    data = written_bytes(value)
    return None if data is None else shown_bytes(data)


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
