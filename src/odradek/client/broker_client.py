"""Requests to one broker, over one connection that is opened by the first request and again after it was closed.

A client belongs to one registration of a broker (`BrokerAddress.broker_epoch`). Retries are the caller's: it knows
what a repeated request does.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

from odradek.client.broker_connection import BrokerConnection, BrokerUnavailable
from odradek.client.login import authenticate
from odradek.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.client.broker_address import BrokerAddress
    from odradek.client.login import Login
    from odradek.host.connecting import Network
    from odradek.host.frame_buffer import ReceiveBuffers
    from odradek.protocol.schema import Request, Response

R = TypeVar("R", bound="Response")
T = TypeVar("T")

CONNECT_TIMEOUT_MS = 10_000.0
FIRST_VERSION = 0  # of ApiVersions, which every broker understands


class BrokerClient:
    """All failures of a call are BrokerUnavailable."""

    def __init__(
        self,
        address: BrokerAddress,
        network: Network,
        client_id: str,
        buffers: ReceiveBuffers,
        login: Login | None = None,
        on_reached: Callable[[BrokerAddress], None] = lambda _: None,
        on_answer: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_reached` is called each time the broker has accepted a connection and answered, `on_answer` after each
        response."""
        self.address = address
        self._login = login
        self._login_expires_s: float | None = None  # by the time of the event loop
        self._on_reached = on_reached
        self._on_answer = on_answer
        self._network = network
        self._client_id = client_id.encode()
        self._buffers = buffers
        self._connection: BrokerConnection | None = None
        self._opening: asyncio.Task[BrokerConnection] | None = None
        self._closed_listeners: list[Callable[[BrokerClient, str], None]] = []
        self._is_closed = False

    @property
    def is_connected(self) -> bool:
        return self._connection is not None and self._connection.is_open

    async def call(self, request: Request, response: type[R], *, timeout_ms: float, version: int | None = None) -> R:
        """The response to a request, by default in the newest version that both brokers have.

        Requests are pipelined and answered in order. A timeout closes the connection: the responses after the missing
        one would be late too."""
        return await self._call(request, response, _unchanged, timeout_ms, version, in_place=False)

    async def call_in_place(
        self,
        request: Request,
        response: type[R],
        read: Callable[[R], T],
        *,
        timeout_ms: float,
        version: int | None = None,
    ) -> T:
        """The result of `read`, which gets the response while the records in it are views of the receive buffer. They
        are invalid when it has returned. Otherwise as `call`."""
        return await self._call(request, response, read, timeout_ms, version, in_place=True)

    def on_closed(self, listener: Callable[[BrokerClient, str], None]) -> Callable[[], None]:
        """Call the listener with the reason each time an open connection ends, until the returned function is
        called."""
        self._closed_listeners.append(listener)
        return lambda: self._closed_listeners.remove(listener)

    def close(self, reason: str = "the client was closed") -> None:
        """Requests on their way fail, and so does every later one."""
        self._is_closed = True
        if self._opening is not None:
            self._opening.cancel()
        if self._connection is not None:
            self._connection.end(reason)

    async def _call(
        self,
        request: Request,
        response: type[R],
        read: Callable[[R], T],
        timeout_ms: float,
        version: int | None,
        *,
        in_place: bool,
    ) -> T:
        connection: BrokerConnection | None = None
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                connection = await self._connected()
                if version is None:
                    version = self._choose_version(type(request), connection)
                result: T = await connection.send(request, version, response, read, in_place=in_place)
                self._on_answer()
                return result
        except TimeoutError:
            if connection is not None:
                connection.end("a response did not come in time")
            raise self._unavailable("did not answer in time") from None

    def _choose_version(self, request: type[Request], connection: BrokerConnection) -> int:
        theirs = connection.versions.get(request.api_key)
        version = -1 if theirs is None else min(theirs[1], request.versions[1])
        if theirs is None or version < max(theirs[0], request.versions[0]):
            raise self._unavailable(f"has no version of {request.__name__} in common")
        return version

    async def _connected(self) -> BrokerConnection:
        """The open connection, or a new one, which concurrent callers share."""
        if self._is_closed:
            raise self._unavailable("is not reached by this client any more")
        if self._opening is None:
            connection, expires_s = self._connection, self._login_expires_s
            if connection is not None and (expires_s is None or asyncio.get_running_loop().time() < expires_s):
                return connection
            self._opening = asyncio.ensure_future(self._open() if connection is None else self._renew(connection))
            self._opening.add_done_callback(self._opened)
        try:
            return await asyncio.shield(self._opening)
        except asyncio.CancelledError:
            caller = asyncio.current_task()
            if self._is_closed and not (caller is not None and caller.cancelling()):  # `close` cancelled the attempt
                raise self._unavailable("is not reached by this client any more") from None
            raise

    async def _open(self) -> BrokerConnection:
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_MS / 1000):
                connection = await self._network.connect(
                    lambda: BrokerConnection(self._client_id, self._buffers, self._connection_closed),
                    self.address.host,
                    self.address.port,
                )
                self._connection = connection
                answer: ApiVersionsResponse = await connection.send(
                    ApiVersionsRequest(), FIRST_VERSION, ApiVersionsResponse, _unchanged, in_place=False
                )
                await self._log_in(connection)
        except TimeoutError:
            if self._connection is not None:
                self._connection.end("the connection could not be opened in time")
            raise self._unavailable("could not be connected to in time") from None
        except OSError as problem:
            raise self._unavailable(str(problem)) from problem
        except BrokerUnavailable as problem:
            if self._connection is not None:
                self._connection.end(str(problem))
            raise self._unavailable(str(problem)) from problem
        connection.versions = {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}
        self._on_reached(self.address)
        return connection

    async def _renew(self, connection: BrokerConnection) -> BrokerConnection:
        """Authenticate again on an open connection, before its session expires."""
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_MS / 1000):
                await self._log_in(connection)
        except (TimeoutError, BrokerUnavailable) as problem:
            connection.end("authentication could not be renewed")
            raise self._unavailable(str(problem) or "did not answer in time") from problem
        return connection

    async def _log_in(self, connection: BrokerConnection) -> None:
        if self._login is None:
            return
        renewal_ms = await authenticate(connection, self._login)
        loop = asyncio.get_running_loop()
        self._login_expires_s = None if renewal_ms is None else loop.time() + renewal_ms / 1000

    def _opened(self, opening: asyncio.Task[BrokerConnection]) -> None:
        self._opening = None
        if opening.cancelled():
            if self._connection is not None:
                self._connection.end("the client was closed")
        else:
            opening.exception()  # its callers get it; without any, nothing is reported

    def _connection_closed(self, reason: str) -> None:
        self._connection = None
        for listener in tuple(self._closed_listeners):
            listener(self, reason)

    def _unavailable(self, reason: str) -> BrokerUnavailable:
        return BrokerUnavailable(f"{self.address} {reason}")


def _unchanged(response: T) -> T:
    return response
