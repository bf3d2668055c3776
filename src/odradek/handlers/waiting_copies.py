"""The memory of complete requests that wait for another broker.

It does not count against `queued.max.request.bytes`: a coordinator or a controller that is slow must not keep this
broker from reading the requests of others. It has a limit of its own instead, above which requests are refused with an
error that clients retry.
"""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_WAITING_BYTES = 16 << 20


class WaitingCopies:
    """One request may wait whatever its size is. Where requests wait for several brokers, those for one of them get at
    most half of the memory, so that a slow broker does not keep requests for others from waiting."""

    __slots__ = ("_by_broker", "used_bytes")

    def __init__(self) -> None:
        self.used_bytes = 0
        self._by_broker: Counter[int] = Counter()

    def has_room(self, size_bytes: int, broker_id: int | None = None) -> bool:
        if self.used_bytes == 0:
            return True
        if broker_id is not None and self._by_broker[broker_id] + size_bytes > MOST_WAITING_BYTES // 2:
            return False
        return self.used_bytes + size_bytes <= MOST_WAITING_BYTES

    def hold(self, size_bytes: int, broker_id: int | None = None) -> None:
        self.used_bytes += size_bytes
        if broker_id is not None:
            self._by_broker[broker_id] += size_bytes

    def release(self, size_bytes: int, broker_id: int | None = None) -> None:
        self.used_bytes -= size_bytes
        if broker_id is not None:
            self._by_broker[broker_id] -= size_bytes

    @contextmanager
    def holding(self, size_bytes: int, broker_id: int | None = None) -> Iterator[None]:
        self.hold(size_bytes, broker_id)
        try:
            yield
        finally:
            self.release(size_bytes, broker_id)
