"""Options of a produce bench: number and size of records, rate, batches."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

PACE_SLICE_S = 0.001


@dataclass(frozen=True, slots=True, kw_only=True)
class ProduceWorkload:
    """Records to write. A run ends after `records` or after `duration_ms`, whichever is first."""

    topic: str
    value: bytes
    records: int | None
    duration_ms: int | None
    rate: float | None
    batch_size: int
    linger_ms: int
    acks: str
    compression: str
    connections: int = 2
    in_flight: int = 5

    def is_over(self, sent: int, seconds: float) -> bool:
        if self.records is not None and sent >= self.records:
            return True
        return self.duration_ms is not None and seconds * 1000 >= self.duration_ms

    def chunk_records(self, most: int) -> int:
        """Number of records to produce at once: at a low rate, those of one millisecond."""
        return most if self.rate is None else max(1, min(most, int(self.rate * PACE_SLICE_S)))

    def pace(self, sent: int, began_at: float, wait: Callable[[float], Any]) -> None:
        """Wait until the next record is due. Returns at once without a rate, or when behind it."""
        if self.rate is None:
            return
        ahead_s = sent / self.rate - (time.perf_counter() - began_at)
        while ahead_s > 0:
            wait(min(ahead_s, 0.1))
            ahead_s = sent / self.rate - (time.perf_counter() - began_at)

    def client_settings(self) -> dict[str, Any]:
        return {
            "acks": self.acks,
            "compression.type": self.compression,
            "batch.size": self.batch_size,
            "batch.num.messages": 1_000_000,
            "linger.ms": self.linger_ms,
            "queue.buffering.max.messages": 500_000,
            "message.timeout.ms": 30_000,
            "message.max.bytes": max(1_000_000, len(self.value) + 1000),
        }

    def facts(self) -> dict[str, Any]:
        return {
            "size": len(self.value),
            "batch_size": self.batch_size,
            "linger_ms": self.linger_ms,
            "acks": self.acks,
            "compression": self.compression,
            "rate": self.rate,
        }
