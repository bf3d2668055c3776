"""One connection to each broker for many requests, so that a caller that asks again and again logs in once."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from odradek.admin.errors import NoAnswer
from odradek.admin.wire_request import TIMEOUT_S, BrokerConnection
from odradek.conventions.failures import Failure

if TYPE_CHECKING:
    from odradek.admin.wire_security import SecuredAddress
    from odradek.protocol.schema import Request, Response

R = TypeVar("R", bound="Response")


class KeptConnections:
    """A `Call` that belongs to one thread, for requests that may be repeated.

    A broker closes connections that were idle, or whose session has ended: a request that fails on a connection that
    was used before is sent once more on a new one. Other credentials need a new connection, too.
    """

    def __init__(self) -> None:
        self._connections: dict[tuple[str, int], BrokerConnection] = {}

    def __call__(
        self,
        address: tuple[str, int] | SecuredAddress,
        request: Request,
        response_type: type[R],
        version: int,
        timeout_s: float = TIMEOUT_S,
    ) -> R:
        host, port = address[:2]
        kept = self._connections.pop((host, port), None)
        if kept is not None:
            if kept.address == address:
                try:
                    return self._ask(kept, request, response_type, version)
                except NoAnswer:
                    raise
                except Failure:
                    pass  # the broker has closed it
            else:
                kept.close()
        return self._ask(BrokerConnection(address, timeout_s), request, response_type, version)

    def close(self) -> None:
        while self._connections:
            self._connections.popitem()[1].close()

    def _ask(self, connection: BrokerConnection, request: Request, response_type: type[R], version: int) -> R:
        """The connection is kept unless the request fails: a late response must not be taken for that of the next."""
        try:
            response = connection.ask(request, response_type, version)
        except BaseException:
            connection.close()
            raise
        host, port = connection.address[:2]
        self._connections[host, port] = connection
        return response
