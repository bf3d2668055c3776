"""Connections that this broker opens to others. `host/network` has the listening side."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

P = TypeVar("P", bound=asyncio.BaseProtocol)


class Network(Protocol):
    async def connect(self, protocol_factory: Callable[[], P], host: str, port: int) -> P:
        """Open a connection and return its protocol. OSError when the address is unknown or refuses."""


class SystemNetwork:
    __slots__ = ()

    async def connect(self, protocol_factory: Callable[[], P], host: str, port: int) -> P:
        _, protocol = await asyncio.get_running_loop().create_connection(protocol_factory, host, port)
        return protocol
