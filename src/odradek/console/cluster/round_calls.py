"""The requests of a watch. Rounds share connections, and a broker that does not answer costs a round one timeout."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from odradek.admin.errors import AnswerTimeout, NoAnswer
from odradek.admin.wire import TIMEOUT_S, KeptConnections
from odradek.protocol.messages.describe_quorum import DescribeQuorumRequest
from odradek.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest

if TYPE_CHECKING:
    from odradek.admin.wire import SecuredAddress, Versions
    from odradek.protocol.schema import Request, Response

FORWARDED = (DescribeQuorumRequest, ListPartitionReassignmentsRequest)  # to the controller

R = TypeVar("R", bound="Response")


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
