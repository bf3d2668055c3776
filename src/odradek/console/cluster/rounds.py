"""The rounds of a watch: what they ask, when the next one begins, and from which age on their state counts as old."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from odradek.admin.errors import AnswerTimeout, NoAnswer
from odradek.admin.wire import TIMEOUT_S, KeptConnections
from odradek.protocol.messages.describe_quorum import DescribeQuorumRequest
from odradek.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest

if TYPE_CHECKING:
    from odradek.admin.wire import SecuredAddress, Versions
    from odradek.protocol.schema import Request, Response

SHARE_OF_TIME = 10  # the watches of a console use at most one of so many parts of a processor together
LONGEST_INTERVAL_S = 60.0  # of a watch that is the only one
LONGEST_SHARED_INTERVAL_S = 300.0
OLD_AFTER = 3  # intervals
OLDEST_S = 180.0
FORWARDED = (DescribeQuorumRequest, ListPartitionReassignmentsRequest)  # to the controller

R = TypeVar("R", bound="Response")


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


class PollingShare:
    """Counts the watches that make rounds at the same time, and so share the processor time of polling."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.watches = 0

    def join(self) -> None:
        with self._lock:
            self.watches += 1

    def leave(self) -> None:
        with self._lock:
            self.watches -= 1


class RoundCalls:
    """A `Call` that belongs to one thread. It does not ask a broker that has not answered in this round, unless it is
    the controller that may not have answered."""

    def __init__(self) -> None:
        self.silent: set[tuple[str, int]] = set()  # addresses
        self._connections = KeptConnections()

    def begin_round(self) -> None:
        self.silent.clear()

    def close(self) -> None:
        """Close the connections; the next request opens one."""
        self._connections.close()

    def __call__(
        self,
        address: tuple[str, int] | SecuredAddress,
        request: Request,
        response_type: type[R],
        version: Versions,
        timeout_s: float = TIMEOUT_S,
    ) -> R:
        host, port = address[:2]
        if (host, port) in self.silent:
            raise NoAnswer(f"no response from {host}:{port} a moment ago")
        try:
            return self._connections(address, request, response_type, version, timeout_s)
        except NoAnswer as failure:
            if not (isinstance(failure, AnswerTimeout) and isinstance(request, FORWARDED)):
                self.silent.add((host, port))
            raise
