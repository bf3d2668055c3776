"""Notices brokers that have ended or do not answer, before their ZooKeeper sessions expire.

The controller exchanges heartbeats with every other broker, and every other broker with the controller, each on a
connection of its own.

- The kernel closes the sockets of a killed process at once. A broker whose connection closes, and that refuses a new
  one, has ended: the controller fences it. If it was the controller, another broker removes its claim, is elected, and
  fences it, together with brokers that have ended at the same time. A broker that starts refuses connections as well,
  but has accepted none before: every broker connects once to every other, so that each of them can distinguish the two.
- A broker that has not answered for `broker.session.timeout.ms` hangs or is cut off. A controller that reaches most of
  the brokers fences it; one that does not is the one that is cut off, and steps down. Of two, neither can know.
  The broker stays fenced until the controller reaches it, also if it reaches the controller: it may advertise a wrong
  address, and would be fenced and unfenced in turns.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from odradek.client.broker_clients import Reachability
from odradek.client.broker_connection import BrokerUnavailable
from odradek.host.logs import get_logger
from odradek.metadata.broker_addresses import broker_address, other_addresses
from odradek.metadata.store import StoreError
from odradek.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from odradek.client.broker_address import BrokerAddress
    from odradek.client.broker_client import BrokerClient
    from odradek.client.broker_clients import BrokerClients
    from odradek.controller.controller import Controller
    from odradek.host.clock import Clock
    from odradek.metadata.cache import MetadataCache
    from odradek.metadata.image import MetadataImage

log = get_logger(__name__)

PURPOSE = "liveness"
PROBE_TIMEOUT_MS = 500.0
RETRY_PAUSE_S = 0.1
PAUSE_AFTER_DEFECT_S = 1.0
ELECTION_PAUSE_S = 0.02
FAILURES_OF_SILENCE = 2  # one may be late because this process was suspended
SMALLEST_CLUSTER_WITH_MAJORITY = 3


class FailureDetector:
    """`remove_claim` removes the claim of a dead controller; `step_down` lets another broker be elected.
    `on_silence` is called with each broker that has not answered for the session timeout."""

    def __init__(
        self,
        cache: MetadataCache,
        clients: BrokerClients,
        clock: Clock,
        listener_name: str,
        find_controller: Callable[[], Controller | None],
        remove_claim: Callable[[int], Awaitable[None]],
        step_down: Callable[[], None],
        on_silence: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._cache = cache
        self._clients = clients
        self._clock = clock
        self._listener_name = listener_name
        self._find_controller = find_controller
        self._remove_claim = remove_claim
        self._step_down = step_down
        self._on_silence = on_silence
        self._watched: dict[BrokerAddress, asyncio.Task[None]] = {}
        self._contacted: dict[BrokerAddress, asyncio.Task[None]] = {}
        self._heard_ms: dict[BrokerAddress, float] = {}  # times of the last answers
        self._silent: set[BrokerAddress] = set()
        self._ended: set[BrokerAddress] = set()
        self._fenced: set[BrokerAddress] = set()  # by this controller, until the metadata shows it
        self._fencing: set[asyncio.Task[None]] = set()
        self._unreachable: dict[BrokerAddress, asyncio.Task[None]] = {}  # that this controller has fenced

    def start(self) -> None:
        self._cache.subscribe(self._follow)
        self._follow(self._cache.image, self._cache.image)

    def stop(self) -> None:
        self._cache.unsubscribe(self._follow)
        for task in (*self._watched.values(), *self._contacted.values(), *self._unreachable.values(), *self._fencing):
            task.cancel()
        self._watched.clear()
        self._contacted.clear()
        self._unreachable.clear()

    def _follow(self, before: MetadataImage, after: MetadataImage) -> None:
        active = other_addresses(after, self._node_id, self._listener_name)
        for address in [each for each in self._contacted if each not in active]:
            self._contacted.pop(address).cancel()
        for address in [each for each in active if each not in self._contacted]:
            self._contacted[address] = asyncio.ensure_future(self._contact(address))
        is_controller = after.controller_id == self._node_id
        wanted = [each for each in active if is_controller or each.node_id == after.controller_id]
        for address in [each for each in self._watched if each not in wanted]:
            self._watched.pop(address).cancel()
            self._silent.discard(address)
            self._ended.discard(address)
            self._fenced.discard(address)
            self._heard_ms.pop(address, None)
        for address in [*self._unreachable]:
            if not is_controller or broker_address(after.brokers.get(address.node_id), self._listener_name) != address:
                self._unreachable.pop(address).cancel()
        for address in [each for each in wanted if each not in self._watched]:
            self._watched[address] = asyncio.ensure_future(self._watch(address))
        if is_controller and before.controller_epoch != after.controller_epoch:
            self._judge()

    @property
    def _node_id(self) -> int:
        return self._cache.broker_config.node_id

    @property
    def _timeout_ms(self) -> float:
        return self._cache.broker_config.broker_session_timeout_ms

    async def _contact(self, address: BrokerAddress) -> None:
        """Connect once, so that it is known from then on that the broker has started."""
        while not self._clients.has_reached(address):
            await self._clients.probe(address, timeout_ms=PROBE_TIMEOUT_MS)
            await asyncio.sleep(RETRY_PAUSE_S)

    async def _watch(self, address: BrokerAddress) -> None:
        """Until the broker has ended, or is not watched any more."""
        began_ms, failures = self._clock.monotonic_ms(), 0
        while True:
            try:
                client = await self._request(address)
            except BrokerUnavailable:
                failures += 1
                is_refused = await self._clients.probe(address, timeout_ms=PROBE_TIMEOUT_MS) is Reachability.REFUSED
                if is_refused and self._clients.has_reached(address):
                    self._suspect(address, self._ended, "refuses connections")
                    if self._cache.image.controller_id == address.node_id:
                        await self._remove_claim(address.node_id)
                    return
                if is_refused:  # it starts
                    began_ms, failures = self._clock.monotonic_ms(), 0
                silence_ms = self._clock.monotonic_ms() - self._heard_ms.get(address, began_ms)
                if failures >= FAILURES_OF_SILENCE and silence_ms >= self._timeout_ms:
                    self._suspect(address, self._silent, "does not answer")
                    self._on_silence(address.node_id)
                await asyncio.sleep(RETRY_PAUSE_S)
            else:
                failures = 0
                self._heard_ms[address] = self._clock.monotonic_ms()
                self._silent.discard(address)
                self._fenced.discard(address)  # it is active, or will be unfenced
                self._judge()
                await self._pause(client)

    async def _request(self, address: BrokerAddress) -> BrokerClient:
        client = self._clients.to(address, PURPOSE)
        timeout_ms = self._timeout_ms / FAILURES_OF_SILENCE
        await client.call(ApiVersionsRequest(), ApiVersionsResponse, timeout_ms=timeout_ms, version=0)
        return client

    def _is_unreachable(self, node_id: int, broker_epoch: int) -> bool:
        return any(each[:2] == (node_id, broker_epoch) for each in self._unreachable)

    async def _wait_until_reached(self, address: BrokerAddress) -> None:
        log.warning(
            "a broker stays fenced until it answers the controller: if it runs, correct its advertised.listeners or "
            "the network to this address", broker=address.node_id, listener=self._listener_name, host=address.host,
            port=address.port,
        )  # fmt: skip
        while True:
            try:
                await self._request(address)
            except BrokerUnavailable:
                await asyncio.sleep(RETRY_PAUSE_S)
            else:
                log.info("a fenced broker answers the controller", broker=address.node_id)
                del self._unreachable[address]
                return

    async def _pause(self, client: BrokerClient) -> None:
        """Until the next heartbeat, or until the connection closes."""
        closed = asyncio.Event()
        forget = client.on_closed(lambda _client, _reason: closed.set())
        timer = self._clock.call_after(self._cache.broker_config.broker_heartbeat_interval_ms, closed.set)
        try:
            if client.is_connected:
                await closed.wait()
        finally:
            timer.cancel()
            forget()

    def _suspect(self, address: BrokerAddress, suspects: set[BrokerAddress], reason: str) -> None:
        if address not in suspects:
            log.warning(f"a broker {reason}", broker=address.node_id, broker_epoch=address.broker_epoch)
            suspects.add(address)
            self._judge()

    def _judge(self) -> None:
        """Carried out by the controller only; another broker does it when it becomes the controller."""
        if self._cache.image.controller_id != self._node_id:
            return
        dead, silent = set(self._ended), self._silent - self._ended
        count = 1 + len(self._watched) - len(dead)
        if silent and 2 * self._count_reached() > count:
            dead |= silent
            for address in silent - self._unreachable.keys():
                self._unreachable[address] = asyncio.ensure_future(self._wait_until_reached(address))
        elif silent and 2 * (count - len(silent)) <= count and count >= SMALLEST_CLUSTER_WITH_MAJORITY:
            log.warning("this controller reaches too few brokers and steps down", silent=len(silent), brokers=count)
            self._step_down()
        if dead - self._fenced:
            self._fenced |= dead
            task = asyncio.ensure_future(self._fence({each.node_id: each.broker_epoch for each in sorted(dead)}))
            self._fencing.add(task)
            task.add_done_callback(self._fencing.discard)

    def _count_reached(self) -> int:
        """This broker and those that have answered lately. Others may be about to be found silent, too."""
        since_ms = self._clock.monotonic_ms() - self._timeout_ms / FAILURES_OF_SILENCE
        return 1 + sum(self._heard_ms.get(each, since_ms) > since_ms for each in self._watched.keys() - self._ended)

    async def _fence(self, registrations: dict[int, int]) -> None:
        try:
            if await self._fence_as_controller(registrations):
                return
        except Exception as problem:
            event = "brokers could not be fenced; retrying"
            log.failure(event, problem, expected=StoreError, brokers=sorted(registrations))
            await asyncio.sleep(RETRY_PAUSE_S if isinstance(problem, StoreError) else PAUSE_AFTER_DEFECT_S)
        self._fenced.clear()
        self._judge()  # some of them may have answered in the pause

    async def _fence_as_controller(self, registrations: dict[int, int]) -> bool:
        """False when another broker is the controller."""
        while self._cache.image.controller_id == self._node_id:
            controller = self._find_controller()
            if controller is not None and controller.is_active:
                controller.cluster.is_unreachable = self._is_unreachable
                await controller.cluster.fence_brokers(registrations)
                return True
            await asyncio.sleep(ELECTION_PAUSE_S)  # it is elected, and reads the metadata
        return False
