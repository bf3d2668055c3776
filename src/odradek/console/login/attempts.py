"""Limits on failed logins, by address and by user name. Pure; a user that does not exist is limited like any other.

An attempt counts as failed from its beginning, so that attempts at the same time are limited too.
"""

from __future__ import annotations

import ipaddress
from collections import OrderedDict, deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

WINDOW_S = 300.0
MOST_OF_ADDRESS = 20
MOST_OF_USER = 10
MOST_NAMES = 10_000


class LoginAttempts:
    def __init__(self, now_s: Callable[[], float], most_names: int = MOST_NAMES) -> None:
        self._now_s = now_s
        self._most_names = most_names
        self._times: OrderedDict[tuple[str, str], deque[float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._times)

    def begin(self, address: str, user: str) -> float:
        """Count an attempt. A number greater than zero: the attempt is refused, for so many seconds."""
        now_s = self._now_s()
        keys = self._limits(address, user)
        waits = [self._wait_s(key, most, now_s) for key, most in keys]
        if any(waits):
            return max(waits)
        for key, most in keys:
            times = self._times.setdefault(key, deque(maxlen=most))
            times.append(now_s)
            self._times.move_to_end(key)
        while len(self._times) > self._most_names:
            self._times.popitem(last=False)
        return 0.0

    def forgive(self, address: str, user: str) -> None:
        """The last attempt was no guess: it succeeded, or the cluster did not answer."""
        for key, _ in self._limits(address, user):
            times = self._times.get(key)
            if times:
                times.pop()
                if not times:
                    del self._times[key]

    def _wait_s(self, key: tuple[str, str], most: int, now_s: float) -> float:
        times = self._times.get(key)
        if times is None or len(times) < most:
            return 0.0
        return max(times[0] + WINDOW_S - now_s, 0.0)

    @staticmethod
    def _limits(address: str, user: str) -> list[tuple[tuple[str, str], int]]:
        return [(("address", network_of(address)), MOST_OF_ADDRESS), (("user", user), MOST_OF_USER)]


def network_of(address: str) -> str:
    """An IPv6 address by its /64 network: one machine can have all of its addresses."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if parsed.version == 6 and parsed.ipv4_mapped is None:
        return str(ipaddress.ip_network((parsed, 64), strict=False))
    return str(parsed)
