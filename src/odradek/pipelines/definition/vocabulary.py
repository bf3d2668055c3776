"""The words that a definition may use, and lengths of time."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Engine(StrEnum):
    """How Spark runs the graph."""

    STANDARD = "standard"  # micro-batches
    REALTIME = "realtime"  # Spark's real-time trigger
    BATCH = "batch"  # once, over a range of offsets or times


class Delivery(StrEnum):
    """What a sink may hold after a failure: a record twice, or each once."""

    AT_LEAST_ONCE = "at_least_once"
    EXACTLY_ONCE = "exactly_once"


class Connector(StrEnum):
    """What reads and writes topics for Spark."""

    JVM = "jvm"  # Spark's own Kafka connector
    PYTHON = "python"  # our data source, which needs no jars


class Encoding(StrEnum):
    """What the bytes of a record's value are."""

    JSON = "json"
    AVRO = "avro"
    TEXT = "text"
    BYTES = "bytes"


class Otherwise(StrEnum):
    """What happens to a row that does not meet an expectation."""

    WARN = "warn"  # counted, and kept
    DROP = "drop"  # counted, and left out
    QUARANTINE = "quarantine"  # to the dead letters, with the reason
    FAIL = "fail"  # the pipeline stops


class SinkMode(StrEnum):
    """Which rows of a result reach a sink."""

    APPEND = "append"  # rows that will not change any more
    UPDATE = "update"  # every row that changed
    UPSERT = "upsert"  # the same, and a table replaces the row of the same key


class StateClock(StrEnum):
    """What time is for the timers of a keyed state."""

    PROCESSING = "processing"
    EVENT = "event"


class FileFormat(StrEnum):
    """Files that Spark reads and writes by itself."""

    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"


class OnDataLoss(StrEnum):
    """What happens when records were deleted before they were read."""

    FAIL = "fail"
    SKIP = "skip"  # the pipeline goes on with those that are left


class StartAt(StrEnum):
    """Where a topic is read from when there is no checkpoint."""

    EARLIEST = "earliest"
    LATEST = "latest"
    TIME = "time"
    OFFSETS = "offsets"


class JoinKind(StrEnum):
    """What happens to rows without a match."""

    INNER = "inner"
    LEFT = "left"
    SEMI = "semi"
    ANTI = "anti"


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    """A length of time; `1 minute` and `60 s` are equal."""

    milliseconds: int

    @property
    def spark(self) -> str:
        """As Spark's intervals and triggers are written."""
        return f"{self.milliseconds} milliseconds"

    def __str__(self) -> str:
        for unit, size in (("day", 86_400_000), ("hour", 3_600_000), ("minute", 60_000), ("second", 1000)):
            if self.milliseconds and self.milliseconds % size == 0:
                count = self.milliseconds // size
                return f"{count} {unit}{'' if count == 1 else 's'}"
        return f"{self.milliseconds} ms"
