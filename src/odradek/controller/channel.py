"""How handlers and coordinators ask the controller, wherever it runs: a request is a value, and so is its result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from odradek.controller.controller import Controller
    from odradek.controller.requests import Ask
    from odradek.metadata.cache import MetadataCache
    from odradek.metadata.entities import BrokerImage
    from odradek.protocol.refusal import Refusal

R = TypeVar("R")


class ControllerChannel(Protocol):
    def local(self) -> ControllerChannel | None:
        """A channel to the controller, if it is in this process and may decide."""

    async def ask(self, request: Ask[R]) -> R:
        """`StoreError` when no controller could decide."""


class LocalControllerChannel:
    """The channel to a controller in this process."""

    def __init__(self, controller: Controller, cache: MetadataCache) -> None:
        self._controller = controller
        self._cache = cache

    def local(self) -> ControllerChannel | None:
        return self if self._controller.is_active else None

    async def ask(self, request: Ask[R]) -> R:
        """A refusal waits too, so that its reason, such as a topic that exists, is visible on this broker when it is
        answered."""
        result, version = await self._controller.ask(request)
        if request.waits_for_applied:
            await self._cache.wait_until_applied(version)
        return result

    async def register_broker(self, broker: BrokerImage) -> int:
        """Returns the broker epoch of the only broker of its cluster; others register in ZooKeeper."""
        broker_epoch, version = await self._controller.cluster.register_broker(broker)
        await self._cache.wait_until_applied(version)
        return broker_epoch


class RefusingChannel:
    """Refuses every request, so that handlers build the answers of requests that could not reach the controller."""

    def __init__(self, refusal: Refusal) -> None:
        self._refusal = refusal

    def local(self) -> ControllerChannel | None:
        return None

    async def ask(self, request: Ask[R]) -> R:
        """`StoreError` when the result cannot hold an error."""
        return request.refuse(self._refusal)
