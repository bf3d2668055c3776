"""How many idempotent producers the logs of a broker remember together, and how many of them as objects.

Kafka bounds their number only by expiry, after a day. A producer id in a batch need not be one that a broker has
assigned: a client that invents one for each batch would fill the memory. A batch of a producer that was forgotten is
accepted with any sequence number (KIP-360), so only producers that have written nothing for ten minutes are forgotten:
no client retries a batch for so long (`delivery.timeout.ms` is two minutes by default). Logs with the most producers
give up theirs, so that a client does not displace those of topics that it does not write to.

The time is counted in checks, which come at intervals of the broker's clock: clients choose the timestamps of batches.
Checks of idle producers are counted only while there are too many, so that a check costs little at other times.
"""

from collections.abc import Iterable

from odradek.log.producer_state import ProducerState

MOST_PRODUCERS = 100_000  # 5 to 17 MB if packed; others take 400 to 1,200 bytes each
PACKED_ABOVE = 10_000
"""Above this number in all logs, producers that were idle from one check to the next are packed, also in logs that have
few. A check costs nothing more for a broker with fewer."""
FAIR_PRODUCERS = 256
"""A log keeps so many, whatever the number of all is."""

CHECK_INTERVAL_MS = 60_000  # at least, from the end of a check to the next
CHECKS_KEPT = 10
"""A producer that was idle in one check more has written nothing for ten intervals."""


def level_to_keep(counts: Iterable[int]) -> int | None:
    """How many producers each log keeps, given how many it has; None if there is room for all."""
    ascending = sorted(counts)
    if sum(ascending) <= MOST_PRODUCERS:
        return None
    return max(largest_level(ascending, MOST_PRODUCERS), FAIR_PRODUCERS)


def must_pack_idle(counts: Iterable[int]) -> bool:
    return sum(counts) > PACKED_ABOVE


def remove_idle(state: ProducerState, level: int) -> int:
    """Checks the producers of a log, and removes those that were idle for the longest time until `level` are left, but
    none that has written in the last ten intervals or has an open transaction. Returns how many were removed."""
    excess = len(state.entries) - level
    if excess <= 0:
        return 0
    idle = [(-checks, producer_id) for checks, producer_id in state.entries.count_idle_check() if checks > CHECKS_KEPT]
    idle.sort()
    removed = [producer_id for _, producer_id in idle[:excess]]
    state.entries.remove(removed)
    return len(removed)


def largest_level(ascending: list[int], most: int) -> int:
    """The largest number to which all counts that exceed it can be reduced, so that their sum is at most `most`."""
    left = most
    for index, count in enumerate(ascending):
        share = left // (len(ascending) - index)
        if count > share:
            return share
        left -= count
    return ascending[-1] if ascending else 0
