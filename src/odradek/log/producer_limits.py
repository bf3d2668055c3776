"""How many idempotent producers the logs of a broker remember together.

Kafka bounds their number only by expiry, after a day. A producer id in a batch need not be one that a broker has
assigned: a client that invents one for each batch would fill the memory. Producers that have written one batch only are
removed first. Logs with the most producers give up theirs, so that a client does not displace those of topics that it
does not write to. Producers with an open transaction are never removed.
"""

from collections.abc import Callable, Iterable, Sequence

from odradek.log.producer_state import ProducerEntry, ProducerState
from odradek.protocol.sentinels import NO_OFFSET

MOST_SINGLE_BATCH_PRODUCERS = 16_384
"""Of which one batch is known. About 10 MB; a client that retries its first batch does so within minutes."""
MOST_PRODUCERS = 100_000
ADDED_BETWEEN_CHECKS = 2_048


class AddedProducers:
    """Counts the producers that are added to the logs of a broker, and has their number checked from time to time. On
    the event loop only: a log that is being loaded has none."""

    __slots__ = ("_check", "_left")

    def __init__(self, check: Callable[[], object]) -> None:
        self._check = check
        self._left = ADDED_BETWEEN_CHECKS

    def add(self) -> None:
        self._left -= 1
        if self._left <= 0:
            self._left = ADDED_BETWEEN_CHECKS
            self._check()


def remove_excess(states: Sequence[ProducerState]) -> int:
    """Removes producers of these logs until their number is within the limits; returns how many."""
    removed = _remove_most(states, _has_one_batch, MOST_SINGLE_BATCH_PRODUCERS)
    return removed + _remove_most(states, _is_removable, MOST_PRODUCERS)


def _remove_most(states: Sequence[ProducerState], is_counted: Callable[[ProducerEntry], bool], most: int) -> int:
    if sum(len(state.entries) for state in states) <= most:
        return 0
    counted = [[each for each, entry in state.entries.items() if is_counted(entry)] for state in states]
    total = sum(map(len, counted))
    if total <= most:
        return 0
    level = largest_level([len(each) for each in counted], most)
    for state, producer_ids in zip(states, counted, strict=True):
        if len(producer_ids) > level:
            state.remove_oldest(producer_ids, len(producer_ids) - level)
    return total - sum(min(len(each), level) for each in counted)


def largest_level(counts: Iterable[int], most: int) -> int:
    """The largest number to which all counts that exceed it can be reduced, so that their sum is at most `most`."""
    left = most
    ascending = sorted(counts)
    for index, count in enumerate(ascending):
        share = left // (len(ascending) - index)
        if count > share:
            return share
        left -= count
    return ascending[-1] if ascending else 0


def _is_removable(entry: ProducerEntry) -> bool:
    return entry.current_txn_first_offset == NO_OFFSET


def _has_one_batch(entry: ProducerEntry) -> bool:
    return len(entry.batches) == 1 and entry.current_txn_first_offset == NO_OFFSET and not entry.uses_transactions
