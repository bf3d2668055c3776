"""The memory of complete requests that wait for another broker.

It does not count against `queued.max.request.bytes`: a coordinator or a controller that is slow must not keep this
broker from reading the requests of others. It has a limit of its own instead, above which requests are refused with an
error that clients retry.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_WAITING_BYTES = 16 << 20


class WaitingCopies:
    """One request may wait whatever its size is."""

    __slots__ = ("used_bytes",)

    def __init__(self) -> None:
        self.used_bytes = 0

    def has_room(self, size_bytes: int) -> bool:
        return self.used_bytes == 0 or self.used_bytes + size_bytes <= MOST_WAITING_BYTES

    def hold(self, size_bytes: int) -> None:
        self.used_bytes += size_bytes

    def release(self, size_bytes: int) -> None:
        self.used_bytes -= size_bytes

    @contextmanager
    def holding(self, size_bytes: int) -> Iterator[None]:
        self.hold(size_bytes)
        try:
            yield
        finally:
            self.release(size_bytes)
