"""A log that needs compaction, in any broker with Kafka's files: filled with compaction off, then compacted."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench.brokers import BrokerError, RunningBroker
from bench.generator import Generator
from bench.processes import is_alive
from bench.topics import alter_broker, alter_topic, create

DEADLINE_S = 300
PAUSE_S = 0.05
KEY_BYTES = 16
SMALLEST_SEGMENT_BYTES = 1 << 20
SEGMENTS = 8


@dataclass(frozen=True, slots=True)
class DirtyLog:
    broker: RunningBroker
    topic: str
    size_bytes: int
    """Of the segments that can be compacted: all but the active one."""
    end_offset: int

    def begin(self) -> None:
        alter_topic(self.broker, self.topic, cleanup_policy="compact")

    def is_clean(self) -> bool:
        return clean_offset(self.broker.directory, self.topic) >= self.end_offset

    def wait(self, sample: Callable[[], None] = lambda: None) -> None:
        """Returns when the log is clean; calls `sample` repeatedly until then."""
        deadline = time.monotonic() + DEADLINE_S
        while not self.is_clean():
            if not is_alive(self.broker.pid) or time.monotonic() > deadline:
                raise BrokerError(f"{self.broker.title} has not compacted a log within {DEADLINE_S} s")
            sample()
            time.sleep(PAUSE_S)


def fill(generator: Generator, broker: RunningBroker, size_bytes: int, record_bytes: int, keys: int) -> DirtyLog:
    """One partition of a few segments. Its cleanup policy is `delete` until `begin`."""
    alter_broker(broker, log_cleaner_backoff_ms="200")
    segment_bytes = max(SMALLEST_SEGMENT_BYTES, size_bytes // SEGMENTS)
    records = max(size_bytes, 3 * segment_bytes) // record_bytes
    topic = create(broker, 1, segment_bytes=str(segment_bytes), min_cleanable_dirty_ratio="0.01")
    generator.run(
        "produce",
        brokers=broker.address,
        topic=topic,
        records=records,
        size=record_bytes - KEY_BYTES,
        keys=max(2, min(keys, records // 20)),
        batch=min(1_000_000, segment_bytes // 4),
    )
    os.sync()  # so that write-back does not fall into the measured time
    *closed, active = sorted((broker.directory / "data" / f"{topic}-0").glob("*.log"))
    return DirtyLog(broker, topic, sum(each.stat().st_size for each in closed), int(active.stem))


def clean_offset(directory: Path, topic: str) -> int:
    """From cleaner-offset-checkpoint: a version, a count, then a line `topic partition offset` for each partition."""
    try:
        lines = (directory / "data" / "cleaner-offset-checkpoint").read_text().splitlines()
    except FileNotFoundError:
        return 0
    return next((int(offset) for name, _, offset in map(str.split, lines[2:]) if name == topic), 0)
