"""The rates of new connections: to the broker, to a listener, from one address (KIP-612). Pure; times are passed in.

Too many connections to the broker or a listener wait for their turn, as they wait to be accepted in Kafka. An address
that exceeds its own rate is refused: its connection is closed after a delay, so that it does not reconnect at once.
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, NamedTuple

from odradek.security.quotas.measurements import Measurements
from odradek.security.quotas.rate import QuotaWindow, Rate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.security.quotas.precedence import QuotaEntity

CONNECTION_CREATION_RATE = "connection_creation_rate"
ADDRESS = "ip"
UNLIMITED = 2**31 - 1
REFUSAL_INTERVAL_MS = 500
"""A refused connection is closed a multiple of this time after it came, as by Kafka's acceptor, which looks for
connections to close that often. A client that connects again at once is refused once per interval."""
LONGEST_WAIT_MS = 30_000
"""A connection that would wait longer is refused; in Kafka the queue of the operating system overflows before."""


class Admission(NamedTuple):
    """A connection begins, or is refused, after `delay_ms`."""

    delay_ms: int
    is_refused: bool


ADMITTED = Admission(0, False)


class ConnectionRates:
    """Owns the rates of connections and the configured quotas of addresses."""

    def __init__(self, window: QuotaWindow) -> None:
        self._window = window
        self._broker = Rate(window)
        self._listeners: dict[str, Rate] = {}
        self._next_turn_ms: dict[str, int] = {}
        self._addresses: Measurements[Rate] = Measurements(lambda: Rate(window))
        self._limit_by_address: dict[str | None, float] = {}

    def update(self, quotas: Mapping[QuotaEntity, Mapping[str, float]]) -> None:
        self._limit_by_address = {
            _canonical(dict(entity)[ADDRESS]): values[CONNECTION_CREATION_RATE]
            for entity, values in quotas.items()
            if CONNECTION_CREATION_RATE in values and ADDRESS in dict(entity)
        }

    def admit(
        self, listener: str, address: str, now_ms: int, *, broker_limit: float | None, listener_limit: float | None
    ) -> Admission:
        """None for `broker_limit` if the listener is exempt from it."""
        has_limit = listener_limit is not None or (broker_limit is not None and broker_limit < UNLIMITED)
        if not has_limit and not self._limit_by_address:
            return ADMITTED
        turn_ms = max(now_ms, self._next_turn_ms.get(listener, 0))
        if turn_ms - now_ms > LONGEST_WAIT_MS:
            return Admission(0, True)
        refused_ms = self._record_address(address, turn_ms)
        if refused_ms:
            intervals = -(-refused_ms // REFUSAL_INTERVAL_MS)
            return Admission(intervals * REFUSAL_INTERVAL_MS, True)
        throttle_ms = 0
        if broker_limit is not None:
            throttle_ms = self._record(self._broker, broker_limit, turn_ms)
        if listener_limit is not None:
            rate = self._listeners.setdefault(listener, Rate(self._window))
            throttle_ms = max(throttle_ms, self._record(rate, listener_limit, turn_ms))
        self._next_turn_ms[listener] = turn_ms + throttle_ms
        return Admission(turn_ms + throttle_ms - now_ms, False)

    def _record_address(self, address: str, now_ms: int) -> int:
        """A refused connection does not count."""
        limit = self._limit_by_address.get(address, self._limit_by_address.get(None))
        if limit is None:
            return 0
        rate = self._addresses.get(address, now_ms)
        throttle_ms = self._record(rate, limit, now_ms)
        if throttle_ms:
            rate.record(-1, now_ms)
        return throttle_ms

    def _record(self, rate: Rate, limit: float, now_ms: int) -> int:
        rate.record(1, now_ms)
        return min(rate.throttle_ms(limit, now_ms), self._window.window_ms)


def _canonical(address: str | None) -> str | None:
    """The text of an address as the operating system gives it for a peer; None is the default."""
    if address is None:
        return None
    try:
        return str(ipaddress.ip_address(address))
    except ValueError:
        return address
