"""When a watch reads the cluster again, and from which age on the state that it has read counts as old. Pure."""

from __future__ import annotations

from typing import NamedTuple

SHARE_OF_TIME = 10  # the watches of a console use at most one of so many parts of a processor together
LONGEST_INTERVAL_S = 60.0  # of a watch that is the only one
LONGEST_SHARED_INTERVAL_S = 300.0
OLD_AFTER = 3  # intervals
OLDEST_S = 180.0


class Round(NamedTuple):
    """`took_s` includes waiting for brokers, `used_s` is the processor time of the watch's thread."""

    took_s: float = 0.0
    used_s: float = 0.0


class Freshness(NamedTuple):
    """How old the last state is, None while there is none; why no later one was read; brokers that did not answer."""

    age_s: float | None = None
    is_old: bool = False
    trouble: str = ""
    silent: tuple[int, ...] = ()


def pause_s(last: Round, interval_s: float, watches: int = 1) -> float:
    """The time from the end of a round to the next one. A round that waits for a broker does not put the next one off;
    brokers rest as long as the round took, at most an interval."""
    return max(interval_s - last.took_s, min(last.took_s, interval_s), _share_s(last, watches))


def old_after_s(last: Round, interval_s: float, watches: int = 1) -> float:
    """The age from which on a page says how old its state is."""
    return min(OLD_AFTER * max(interval_s, _share_s(last, watches)), OLDEST_S)


def _share_s(last: Round, watches: int) -> float:
    """The pause after which a number of watches with rounds like this one have used their share."""
    longest_s = min(LONGEST_INTERVAL_S * watches, LONGEST_SHARED_INTERVAL_S)
    return min(last.used_s * SHARE_OF_TIME * watches, longest_s)
