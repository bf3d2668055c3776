"""Notices that this broker is cut off from the rest of its cluster."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from odradek.client.broker_connection import BrokerUnavailable
from odradek.controller.failure_detector import SMALLEST_CLUSTER_WITH_MAJORITY
from odradek.host.logs import get_logger
from odradek.host.zookeeper import SessionEvent
from odradek.metadata.broker_addresses import other_addresses
from odradek.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.client.broker_address import BrokerAddress
    from odradek.client.broker_clients import BrokerClients
    from odradek.host.clock import Clock, Timer
    from odradek.host.zookeeper import ZooKeeperSession
    from odradek.metadata.cache import MetadataCache

log = get_logger(__name__)

CHECK_MS = 250.0
CONTACT_PURPOSE = "contact"
CONTACT_TIMEOUT_MS = 1000.0
CONTACT_PAUSE_S = 0.5


class Isolation:
    """A broker is isolated when it has had no connection to ZooKeeper for a session timeout, and has heard nothing from
    another broker for as long. By then the others lead in its place, and it cannot learn who leads: it must not serve
    clients, who would otherwise read its old metadata again and again.

    A broker that hears another one continues: only ZooKeeper is unavailable. So does a broker of a cluster of two,
    because the other one may have ended."""

    def __init__(
        self,
        session: ZooKeeperSession,
        clock: Clock,
        timeout_ms: float,
        count_brokers: Callable[[], int],
        contact_others: Callable[[], None],
    ) -> None:
        """`contact_others` sends a request to every other broker that has none to answer."""
        self._clock = clock
        self._timeout_ms = timeout_ms
        self._count_brokers = count_brokers
        self._contact_others = contact_others
        self._lost_ms: float | None = None  # when the connection to ZooKeeper was lost
        self._timer: Timer | None = None
        self._last_contact_ms: Callable[[], float] | None = None
        self._on_change: Callable[[bool], None] = lambda _: None
        self.is_isolated = False
        session.subscribe(self._follow_session)

    def start(self, last_contact_ms: Callable[[], float], on_change: Callable[[bool], None]) -> None:
        """`last_contact_ms` is when another broker was last heard."""
        self._last_contact_ms = last_contact_ms
        self._on_change = on_change
        self._check()

    @property
    def has_connection(self) -> bool:
        """Whether the session with ZooKeeper is connected."""
        return self._lost_ms is None

    def stop(self) -> None:
        self._last_contact_ms = None
        if self._timer is not None:
            self._timer.cancel()

    def _follow_session(self, event: SessionEvent) -> None:
        if event is SessionEvent.CONNECTED:
            self._lost_ms = None
        elif self._lost_ms is None:
            self._lost_ms = self._clock.monotonic_ms()
        self._check()

    def _check(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._last_contact_ms is None:
            return
        if self._lost_ms is not None:
            self._timer = self._clock.call_after(CHECK_MS, self._check)
            self._contact_others()
        is_isolated = self._lost_ms is not None and self._is_silent(max(self._lost_ms, self._last_contact_ms()))
        if is_isolated is not self.is_isolated:
            self.is_isolated = is_isolated
            if is_isolated:
                log.warning("this broker is cut off from the cluster and serves no clients until it is back")
            else:
                log.info("this broker is in contact with the cluster again")
            self._on_change(is_isolated)

    def _is_silent(self, since_ms: float) -> bool:
        is_overdue = self._clock.monotonic_ms() - since_ms > self._timeout_ms
        return is_overdue and self._count_brokers() >= SMALLEST_CLUSTER_WITH_MAJORITY


class BrokerContacts:
    """Requests to all other brokers that show whether any of them can be reached. `BrokerClients.last_answer_ms` notes
    their answers."""

    def __init__(self, metadata: MetadataCache, clients: BrokerClients, listener_name: str) -> None:
        self._metadata = metadata
        self._clients = clients
        self._listener_name = listener_name
        self._requests: dict[BrokerAddress, asyncio.Task[None]] = {}

    def request_all(self) -> None:
        """One request to each broker that is not fenced, unless an earlier one may still be answered."""
        own_id = self._metadata.broker_config.node_id
        for address in other_addresses(self._metadata.image, own_id, self._listener_name):
            earlier = self._requests.get(address)
            if earlier is None or earlier.done():
                self._requests[address] = asyncio.ensure_future(self._request(address))

    async def _request(self, address: BrokerAddress) -> None:
        with contextlib.suppress(BrokerUnavailable):
            client = self._clients.to(address, CONTACT_PURPOSE)
            await client.call(ApiVersionsRequest(), ApiVersionsResponse, timeout_ms=CONTACT_TIMEOUT_MS, version=0)
        await asyncio.sleep(CONTACT_PAUSE_S)

    def stop(self) -> None:
        for request in self._requests.values():
            request.cancel()
