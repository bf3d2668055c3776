"""The enumerations and durations of a definition."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Engine(StrEnum):
    """How Spark runs the graph."""

    STANDARD = "standard"  # micro-batches
    REALTIME = "realtime"  # Spark's real-time trigger
    BATCH = "batch"  # once, over a range of offsets or times


class Delivery(StrEnum):
    """The delivery guarantee after a failure."""

    AT_LEAST_ONCE = "at_least_once"
    EXACTLY_ONCE = "exactly_once"


class Connector(StrEnum):
    """The implementation that reads and writes topics for Spark."""

    JVM = "jvm"  # Spark's own Kafka connector
    PYTHON = "python"  # Odradek's data source, which needs no jars


class Encoding(StrEnum):
    """The format of a record's value."""

    JSON = "json"
    AVRO = "avro"
    TEXT = "text"
    BYTES = "bytes"


class Otherwise(StrEnum):
    """What happens to a row that does not meet an expectation."""

    WARN = "warn"  # counted, and kept
    DROP = "drop"  # counted, and left out
    QUARANTINE = "quarantine"  # sent to the dead-letter topic, with the reason
    FAIL = "fail"  # the pipeline stops


class SinkMode(StrEnum):
    """Which rows of a result reach a sink."""

    APPEND = "append"  # final rows only
    UPDATE = "update"  # every row that changed
    UPSERT = "upsert"  # every row that changed, replacing the table's row of the same key


class StateClock(StrEnum):
    """The clock of a keyed state's timers."""

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


class LakehouseMode(StrEnum):
    """How rows reach a lakehouse table."""

    APPEND = "append"
    MERGE = "merge"  # a row replaces that of its key


class Tombstones(StrEnum):
    """What becomes of a record without a value, which deletes the earlier records of its key from a compacted topic."""

    DROP = "drop"
    ROWS = "rows"  # a row in which the columns of the value are null
    DEAD_LETTERS = "dead_letters"


class OnDataLoss(StrEnum):
    """What happens when records were deleted before they were read."""

    FAIL = "fail"
    SKIP = "skip"  # the pipeline continues with the remaining records


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


class StreamJoinKind(StrEnum):
    """Which rows without a match a join of two streams has."""

    INNER = "inner"
    LEFT = "left"
    RIGHT = "right"
    FULL = "full"


class Unbounded(StrEnum):
    """What stands in place of a duration that has no end."""

    FOREVER = "forever"


class Late(StrEnum):
    """What becomes of rows that the watermark declares late."""

    COUNT = "count"
    DEAD_LETTERS = "dead_letters"


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
