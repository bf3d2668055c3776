"""The way to the current controller: in this process, or over the network to the broker that the metadata names."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from odradek.client.broker_connection import BrokerUnavailable
from odradek.metadata.broker_addresses import broker_address
from odradek.metadata.store import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.client.broker_client import BrokerClient
    from odradek.client.broker_clients import BrokerClients
    from odradek.controller.controller import Controller
    from odradek.host.clock import Clock
    from odradek.metadata.cache import MetadataCache
    from odradek.metadata.image import MetadataImage

FIRST_PAUSE_MS = 20.0
LONGEST_PAUSE_MS = 500.0


class Deadline:
    """The time that is left for a request."""

    def __init__(self, clock: Clock, timeout_ms: float) -> None:
        self._clock = clock
        self._end_ms = clock.monotonic_ms() + timeout_ms
        self._pause_ms = FIRST_PAUSE_MS

    @property
    def remaining_ms(self) -> float:
        return self._end_ms - self._clock.monotonic_ms()

    def next_pause_ms(self) -> float:
        """Pauses between attempts grow; none lasts beyond the deadline."""
        pause_ms = min(self._pause_ms, self.remaining_ms)
        self._pause_ms = min(self._pause_ms * 2, LONGEST_PAUSE_MS)
        return pause_ms


class ControllerRoute:
    """`find_local` returns the controller while this broker is it."""

    def __init__(
        self,
        cache: MetadataCache,
        clients: BrokerClients,
        clock: Clock,
        listener_name: str,
        find_local: Callable[[], Controller | None],
    ) -> None:
        self._cache = cache
        self._clients = clients
        self._clock = clock
        self._listener_name = listener_name
        self._find_local = find_local
        self._purposes: set[str] = set()  # of connections to controllers
        self._awaiting_commit: set[asyncio.Future[None]] = set()
        self._awaiting_controller: set[asyncio.Future[None]] = set()
        cache.subscribe(self._follow)

    @property
    def local(self) -> Controller | None:
        """The controller, if it is in this process and may decide."""
        controller = self._find_local()
        return controller if controller is not None and controller.is_active else None

    def client(self, purpose: str) -> BrokerClient:
        """A connection to the controller; `BrokerUnavailable` when the metadata names none that can be reached."""
        image = self._cache.image
        address = broker_address(image.brokers.get(image.controller_id), self._listener_name)
        if address is None or address.node_id == self._node_id:
            raise BrokerUnavailable("the metadata names no controller that can be reached")
        self._purposes.add(purpose)
        return self._clients.to(address, purpose)

    def give_up(self, node_id: int) -> None:
        """Requests on their way to this controller fail, so that they are sent again: it may never answer."""
        self._clients.give_up(node_id, self._purposes)

    @property
    def _node_id(self) -> int:
        return self._cache.broker_config.node_id

    def deadline(self, timeout_ms: float) -> Deadline:
        return Deadline(self._clock, timeout_ms)

    async def pause(self, deadline: Deadline) -> bool:
        """Wait before another attempt, until another controller is elected or a short time has passed. False when
        the deadline has."""
        await self._wait(self._awaiting_controller, deadline.next_pause_ms())
        return deadline.remaining_ms > 0

    async def wait_until_applied(self, version: int, deadline: Deadline) -> bool:
        """Whether this broker has applied the version before the deadline."""
        try:
            async with asyncio.timeout(max(deadline.remaining_ms, 0) / 1000):
                await self._cache.wait_until_applied(version)
        except (TimeoutError, StoreError):
            return False
        return True

    async def wait_until_topics_exist(self, names: set[str], deadline: Deadline) -> None:
        """Return when this broker has applied the commits that create the topics, or the deadline has passed."""
        while not names <= self._cache.image.topics.keys() and deadline.remaining_ms > 0:
            await self._wait(self._awaiting_commit, deadline.remaining_ms)
        await self.wait_until_applied(self._cache.image.version, deadline)

    async def _wait(self, waiting: set[asyncio.Future[None]], timeout_ms: float) -> None:
        if timeout_ms <= 0:
            return
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting.add(woken)
        timer = self._clock.call_after(timeout_ms, lambda: _wake({woken}))
        try:
            await woken
        finally:
            timer.cancel()
            waiting.discard(woken)

    def _follow(self, before: MetadataImage, after: MetadataImage) -> None:
        _wake(self._awaiting_commit)
        if before.controller_epoch == after.controller_epoch and before.brokers is after.brokers:
            return
        is_replaced = before.controller_epoch != after.controller_epoch
        # A broker that was fenced did not answer, or did not hear: requests of that time may be lost on their way.
        is_doubtful = any(_was_fenced(each, before, after) for each in (before.controller_id, self._node_id))
        if is_replaced or is_doubtful:
            self.give_up(before.controller_id)
        _wake(self._awaiting_controller)


def _was_fenced(node_id: int, before: MetadataImage, after: MetadataImage) -> bool:
    earlier, broker = before.brokers.get(node_id), after.brokers.get(node_id)
    return earlier is not None and not earlier.is_fenced and (broker is None or broker.is_fenced)


def _wake(waiting: set[asyncio.Future[None]]) -> None:
    for future in waiting:
        if not future.done():
            future.set_result(None)
