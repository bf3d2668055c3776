"""A record of the demo: one that this run produced, with its readings, or one of another producer, as text."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from odradek.cli.framework.output import one_line

if TYPE_CHECKING:
    from confluent_kafka import Message

HEADER = "odradek-demo"  # its value is the id of the run and the time of sending


def sent_header(run_id: str, now_ns: int) -> list[tuple[str, str | bytes | None]]:
    return [(HEADER, f"{run_id} {now_ns}".encode())]


@dataclass(frozen=True, slots=True)
class DemoRecord:
    """`sent_ns` and `readings` are set for records of this run only."""

    partition: int
    offset: int
    text: str
    sent_ns: int | None = None
    readings: tuple[str, ...] = ()
    is_hot: bool = False


def read_demo_record(message: Message, run_id: str) -> DemoRecord:
    value = message.value()
    text = one_line(None if value is None else value.decode(errors="replace"))
    place = (message.partition() or 0, message.offset() or 0)
    sent_ns = sent_by(run_id, message)
    if sent_ns is None:
        return DemoRecord(*place, text)
    try:
        fields: dict[str, Any] = json.loads(value or b"")
        sensors = fields["sensor_readings"]
        readings = (
            str(fields["timestamp"]).rpartition(" ")[2],
            str(fields["hcid"]),
            str(fields["production"]),
            str(sensors["pressure"]),
            str(sensors["temperature"]),
            str(sensors["oil_percentage"]),
        )
        return DemoRecord(*place, text, sent_ns, readings, sensors["pressure"] > 125)
    except (ValueError, LookupError, TypeError, RecursionError):  # another producer's value with this run's header
        return DemoRecord(*place, text)


def sent_by(run_id: str, message: Message) -> int | None:
    """When this run sent the record; None for a record of another producer."""
    stamp = dict(message.headers() or []).get(HEADER)
    if not isinstance(stamp, bytes):
        return None
    owner, _, sent_ns = stamp.partition(b" ")
    return int(sent_ns) if owner == run_id.encode() and sent_ns.isdigit() and len(sent_ns) < 20 else None
