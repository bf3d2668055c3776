"""What kafka-python and aiokafka have in common: aiokafka began as a copy of the other, and took over its names."""

from collections.abc import Iterable
from typing import Any

from tests.clients.error_names import error_name
from tests.clients.scenario.steps import Json, shown_bytes, written_bytes

DONE = {"error": "NONE"}
PATIENCE_SECONDS = 20.0
LARGEST_BYTES = 4_000_000

CONSUMER_SETTINGS = {"group_id": None, "enable_auto_commit": False, "max_partition_fetch_bytes": LARGEST_BYTES}


def producer_settings(arguments: dict[str, Json]) -> dict[str, Any]:
    return {
        "compression_type": None if arguments["codec"] == "none" else arguments["codec"],
        "acks": "all" if arguments["acks"] == -1 else arguments["acks"],
        "enable_idempotence": arguments["idempotent"],
        "max_request_size": LARGEST_BYTES,
        "linger_ms": 20,
    }


def sent_record(partition: int, record: Json) -> dict[str, Any]:
    """The arguments of `send` after the topic."""
    return {
        "value": written_bytes(record["value"]),
        "key": written_bytes(record["key"]),
        "headers": [(name, written_bytes(value)) for name, value in record["headers"]],
        "partition": partition,
        "timestamp_ms": record["timestamp"],
    }


def acknowledged(metadata: Any, acks: int) -> Json:
    return {"offset": None if acks == 0 else metadata.offset}


def refusal(failure: BaseException | int) -> Json:
    """For an exception of the client's, or a code from a response."""
    code = failure if isinstance(failure, int) else getattr(failure, "errno", None)
    return {"error": repr(failure) if code is None else error_name(code)}


def consumed(records: Iterable[Any]) -> Json:
    ordered = sorted(records, key=lambda record: (record.partition, record.offset))
    return {"records": [_shown(record) for record in ordered]}


def _shown(record: Any) -> Json:
    shown = {
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "timestamp_type": "LOG_APPEND_TIME" if record.timestamp_type == 1 else "CREATE_TIME",
        "key": shown_bytes(record.key),
        "value": shown_bytes(record.value),
        "headers": [[name, shown_bytes(value)] for name, value in record.headers],
    }
    if hasattr(record, "leader_epoch"):  # aiokafka's records have none
        shown["leader_epoch"] = record.leader_epoch
    return shown
