"""The words, names, durations and moments of a definition."""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass
from enum import StrEnum

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}\Z")
PIPELINE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}\Z")
TOPIC_NAME = re.compile(r"(?:(?:/[A-Za-z0-9_-]+)+:)?[A-Za-z0-9._-]{1,249}\Z")  # also of a topic in a stream
IMPORT_PATH = re.compile(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)\Z")
DURATION_PART = re.compile(r"(\d{1,12}(?:\.\d{1,6})?)\s*([A-Za-z]+)\s*")
UNITS_MS = {
    "ms": 1, "millisecond": 1, "s": 1000, "sec": 1000, "second": 1000, "m": 60_000, "min": 60_000, "minute": 60_000,
    "h": 3_600_000, "hour": 3_600_000, "d": 86_400_000, "day": 86_400_000, "week": 604_800_000,
}  # fmt: skip


class Engine(StrEnum):
    STANDARD = "standard"  # micro-batches
    REALTIME = "realtime"  # Spark's real-time trigger
    BATCH = "batch"  # once, over a range of offsets or times


class Delivery(StrEnum):
    AT_LEAST_ONCE = "at_least_once"
    EXACTLY_ONCE = "exactly_once"


class Encoding(StrEnum):
    JSON = "json"
    AVRO = "avro"
    TEXT = "text"
    BYTES = "bytes"


class Otherwise(StrEnum):
    WARN = "warn"  # counted, and kept
    DROP = "drop"  # counted, and left out
    QUARANTINE = "quarantine"  # sent to the dead-letter topic, with the reason
    FAIL = "fail"  # the pipeline stops


class SinkMode(StrEnum):
    """Which rows of a result reach a sink."""

    APPEND = "append"  # final rows only
    UPDATE = "update"  # every row that changed


class StateClock(StrEnum):
    PROCESSING = "processing"
    EVENT = "event"


class StateOrder(StrEnum):
    """The order in which keyed state takes the rows of a key."""

    ARRIVAL = "arrival"
    ANY = "any"  # the processor's result does not depend on it


class FileFormat(StrEnum):
    """File formats that Spark reads and writes without further packages."""

    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"


class LakehouseFormat(StrEnum):
    """Table formats on files, which need a library of their own in Spark."""

    DELTA = "delta"
    ICEBERG = "iceberg"


class Tombstones(StrEnum):
    """What becomes of a record without a value, which deletes the earlier records of its key from a compacted topic."""

    DROP = "drop"
    ROWS = "rows"  # a row in which the columns of the value are null
    DEAD_LETTERS = "dead_letters"


class OnDataLoss(StrEnum):
    FAIL = "fail"
    SKIP = "skip"  # the pipeline continues with the remaining records


class StartAt(StrEnum):
    EARLIEST = "earliest"
    LATEST = "latest"
    TIME = "time"
    OFFSETS = "offsets"


class StreamJoinKind(StrEnum):
    """Which rows without a match a join of two streams has."""

    INNER = "inner"
    LEFT = "left"
    RIGHT = "right"
    FULL = "full"


class Unbounded(StrEnum):
    FOREVER = "forever"


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    """A duration; `1 minute` and `60 s` are equal."""

    milliseconds: int

    @property
    def spark(self) -> str:
        """The duration in the notation of Spark's intervals and triggers."""
        return f"{self.milliseconds} milliseconds"

    def __str__(self) -> str:
        for unit, size in (("day", 86_400_000), ("hour", 3_600_000), ("minute", 60_000), ("second", 1000)):
            if self.milliseconds and self.milliseconds % size == 0:
                count = self.milliseconds // size
                return f"{count} {unit}{'' if count == 1 else 's'}"
        return f"{self.milliseconds} ms"


def parse_duration(text: str) -> Duration | None:
    """Parses `100 ms`, `30 s`, `1 minute`, `1 hour 30 minutes`; None if invalid or shorter than a millisecond."""
    rest = text.strip().lower().removeprefix("interval ")
    total = 0.0
    position = 0
    while position < len(rest):
        part = DURATION_PART.match(rest, position)
        if part is None:
            return None
        unit = UNITS_MS.get(part[2]) or UNITS_MS.get(part[2].removesuffix("s"))
        if unit is None:
            return None
        total += float(part[1]) * unit
        position = part.end()
    if not rest or round(total) < (0 if total == 0 else 1):
        return None
    return Duration(round(total))


def parse_moment(text: str) -> int | None:
    """An ISO 8601 time in milliseconds since 1970, in UTC if it has no zone."""
    try:
        moment = datetime.datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=datetime.UTC)
    return int(moment.timestamp() * 1000)


def is_topic_name(text: str) -> bool:
    return TOPIC_NAME.match(text) is not None and text not in {".", ".."}
