"""Connections to others over TLS: a Network whose protocols get their first bytes after the handshake."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar, cast

from odradek.host.tls_connection import TlsConnection

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from odradek.host.connecting import Network
    from odradek.host.tls_connection import TlsResources

P = TypeVar("P", bound=asyncio.BaseProtocol)


class TlsNetwork:
    """`context` is asked for each connection, so that a replaced certificate applies to the next one."""

    __slots__ = ("_context", "_network", "_resources")

    def __init__(self, network: Network, context: Callable[[], ssl.SSLContext], resources: TlsResources) -> None:
        self._network = network
        self._context = context
        self._resources = resources

    async def connect(self, protocol_factory: Callable[[], P], host: str, port: int) -> P:
        """OSError also when the handshake fails: the message names the reason."""
        loop = asyncio.get_running_loop()
        protocol = protocol_factory()
        secured: asyncio.Future[None] = loop.create_future()

        def finish(problem: str | None) -> None:
            if not secured.done() and problem is None:
                secured.set_result(None)
            elif not secured.done():
                secured.set_exception(OSError(problem))

        tls = TlsConnection(
            cast("asyncio.BufferedProtocol", protocol),
            self._context(),
            self._resources,
            loop,
            on_secured=lambda _certificate: finish(None),
            on_failed=finish,
            on_lost=lambda: finish("the connection was closed in the TLS handshake"),
            server_hostname=host,
            is_server=False,
        )
        await self._network.connect(lambda: tls, host, port)
        try:
            await secured
        except BaseException:
            tls.abort()
            raise
        return protocol
