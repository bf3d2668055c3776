"""Reports failed authentications in the broker's log, at most one line per client address and ten seconds.

A client with a wrong password tries again many times a second; the next line has the number of attempts in between.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from odradek.host.logs import get_logger

if TYPE_CHECKING:
    from odradek.host.clock import Clock

log = get_logger(__name__)

INTERVAL_MS = 10_000.0
MOST_CLIENTS = 1000  # that are remembered


class AuthenticationFailures:
    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()  # by listener
        self._reported: dict[str, tuple[float, int]] = {}  # by address: when, and how many times since

    def report(self, clock: Clock, client: str, listener: str, **facts: object) -> None:
        self.counts[listener] += 1
        now_ms = clock.monotonic_ms()
        reported_ms, repeated = self._reported.pop(client, (None, 0))
        if reported_ms is not None and now_ms - reported_ms < INTERVAL_MS:
            self._reported[client] = reported_ms, repeated + 1
            return
        if len(self._reported) >= MOST_CLIENTS:
            del self._reported[next(iter(self._reported))]
        self._reported[client] = now_ms, 0
        log.warning(
            "authentication failed",
            client=client,
            listener=listener,
            **facts,
            **({"repeated": repeated} if repeated else {}),
        )
