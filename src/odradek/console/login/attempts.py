"""Limits on failed logins, by address and by user name at an address, and delays by user name, which slow guesses from
many addresses down and lock nobody out. Pure; a user that does not exist is limited like any other.

An attempt counts as failed from its beginning, so that attempts at the same time are limited too.
"""

from __future__ import annotations

import ipaddress
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import NamedTuple

WINDOW_S = 300.0
MOST_OF_ADDRESS = 20
MOST_OF_USER = 10
MOST_NAMES = 10_000
LONGEST_DELAY_S = 10

Key = tuple[str, ...]


class Admission(NamedTuple):
    """An attempt is refused for so many seconds, or is to be delayed; zero means neither."""

    refused_s: float = 0.0
    delay_s: float = 0.0


class LoginAttempts:
    def __init__(self, now_s: Callable[[], float], most_names: int = MOST_NAMES) -> None:
        self._now_s = now_s
        self._most_names = most_names
        self._times: OrderedDict[Key, deque[float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._times)

    def begin(self, address: str, user: str) -> Admission:
        """Count an attempt, unless it is refused. Each failure of a user beyond MOST_OF_USER delays by a second."""
        now_s = self._now_s()
        keys = self._limits(address, user)
        refused_s = max(self._wait_s(key, most, now_s) for key, most in keys)
        if refused_s:
            return Admission(refused_s)
        failures = sum(time_s + WINDOW_S > now_s for time_s in self._times.get(("user", user), ()))
        for key, most in [*keys, (("user", user), MOST_OF_USER + LONGEST_DELAY_S)]:
            times = self._times.setdefault(key, deque(maxlen=most))
            times.append(now_s)
            self._times.move_to_end(key)
        while len(self._times) > self._most_names:
            self._times.popitem(last=False)
        return Admission(delay_s=float(min(max(failures - MOST_OF_USER + 1, 0), LONGEST_DELAY_S)))

    def forgive(self, address: str, user: str) -> None:
        """The last attempt was no guess: it succeeded, or the cluster did not answer."""
        for key in [*(key for key, _ in self._limits(address, user)), ("user", user)]:
            times = self._times.get(key)
            if times:
                times.pop()
                if not times:
                    del self._times[key]

    def _wait_s(self, key: Key, most: int, now_s: float) -> float:
        times = self._times.get(key)
        if times is None or len(times) < most:
            return 0.0
        return max(times[0] + WINDOW_S - now_s, 0.0)

    @staticmethod
    def _limits(address: str, user: str) -> list[tuple[Key, int]]:
        network = network_of(address)
        return [(("address", network), MOST_OF_ADDRESS), (("user", user, network), MOST_OF_USER)]


def network_of(address: str) -> str:
    """An IPv6 address by its /64 network: one machine can have all of its addresses."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if parsed.version == 4:
        return str(parsed)
    return str(parsed.ipv4_mapped or ipaddress.ip_network((int(parsed), 64), strict=False))
