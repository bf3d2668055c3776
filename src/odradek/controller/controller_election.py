"""The election of the controller: each broker of a cluster stands for it whenever `/controller` is missing.

The broker that has won commits which brokers are alive, until its session expires or another controller has claimed a
higher epoch. Commits are fenced in the store, so a controller that learns late of its end does no harm.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from odradek.controller.controller import Controller
from odradek.controller.decisions.brokers import LiveBroker
from odradek.controller.metadata_writer import ControllerFenced
from odradek.controller.registration import decode_registration
from odradek.host.logs import get_logger
from odradek.host.zookeeper import NoNode, SessionClosed, SessionEvent, ZooKeeperError
from odradek.metadata.store import StoreError
from odradek.metadata.zookeeper_layout import BROKER_IDS, CONTROLLER, broker_path
from odradek.protocol.malformed import MalformedMessage

if TYPE_CHECKING:
    from odradek.configuration.broker_configs import BrokerConfig
    from odradek.host.host import Host
    from odradek.host.zookeeper import ZooKeeperSession
    from odradek.metadata.zookeeper_store import ZooKeeperStore

log = get_logger(__name__)

RETRY_PAUSE_S = 0.2
PAUSE_AFTER_STEPPING_DOWN_MS = 5_000.0


class Election:
    def __init__(self, session: ZooKeeperSession, store: ZooKeeperStore, config: BrokerConfig, host: Host) -> None:
        self._session = session
        self._store = store
        self._config = config
        self._entropy = host.entropy
        self._clock = host.clock
        self._may_have_changed = asyncio.Event()
        self._has_lost_session = False
        self._steps_down = False
        self._stands_again_ms = float("-inf")
        self._task: asyncio.Task[None] | None = None
        self.controller: Controller | None = None
        """The controller, while this broker is it."""

    def start(self) -> None:
        self._session.subscribe(self._follow_session)
        self._may_have_changed.set()
        self._task = asyncio.ensure_future(self._run())

    async def stop(self) -> None:
        """Stand no more, finish the writes in progress, and remove the claim, so that another broker is elected."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        await self._resign("the broker stops")
        try:
            stat = await self._session.exists(CONTROLLER)
            if stat is not None and stat.ephemeral_owner == self._session.session_id:
                await self._session.delete(CONTROLLER, stat.version)
        except ZooKeeperError as problem:
            log.info("the claim of this controller ends with its session", reason=problem)

    def step_down(self) -> None:
        """Let another broker be the controller: this one reaches too few brokers. It stands again after a while."""
        self._steps_down = True
        self._may_have_changed.set()

    async def remove_claim_of(self, node_id: int) -> None:
        """The process of the controller has ended: do not wait for its session."""
        try:
            await self._store.claims.remove_claim_of(node_id)
        except ZooKeeperError as problem:
            log.warning("the claim of a dead controller stays", broker=node_id, reason=problem)

    def _follow_session(self, event: SessionEvent) -> None:
        if event is SessionEvent.EXPIRED:
            self._has_lost_session = True
        self._may_have_changed.set()

    async def _run(self) -> None:
        while True:
            await self._may_have_changed.wait()
            self._may_have_changed.clear()
            try:
                await self._take_part()
                if self.controller is not None:
                    await self.controller.cluster.follow_live_brokers(await self._read_live_brokers())
            except ControllerFenced:
                await self._resign("another controller has taken over")
                self._may_have_changed.set()
            except SessionClosed:
                return
            except Exception as problem:
                log.failure(
                    "the election of the controller was interrupted; retrying",
                    problem,
                    expected=(StoreError, ZooKeeperError, ValueError),
                )
                await asyncio.sleep(RETRY_PAUSE_S)
                self._may_have_changed.set()

    async def _take_part(self) -> None:
        """Watches `/controller` in every case."""
        if self._has_lost_session:
            self._has_lost_session = False
            await self._resign("the ZooKeeper session has expired")
        stat = await self._session.exists(CONTROLLER, self._may_have_changed.set)
        if self._steps_down:
            await self._resign("it reaches too few brokers")
            self._stands_again_ms = self._clock.monotonic_ms() + PAUSE_AFTER_STEPPING_DOWN_MS
            self._clock.call_after(PAUSE_AFTER_STEPPING_DOWN_MS, self._may_have_changed.set)
            if stat is not None and stat.ephemeral_owner == self._session.session_id:
                await self._session.delete(CONTROLLER, stat.version)
            self._steps_down = False
            return
        if stat is None:
            # A claim of this session that is gone was removed by another process: it is not the controller any more.
            await self._resign("its node in ZooKeeper is gone")
            await self._stand()
        elif stat.ephemeral_owner != self._session.session_id:
            await self._resign("another broker is the controller")
        elif self.controller is None:
            # It won, and was interrupted before it could begin: the next election has a new epoch.
            await self._session.delete(CONTROLLER, stat.version)

    async def _stand(self) -> None:
        if self._clock.monotonic_ms() < self._stands_again_ms:
            return
        controller_epoch = await self._store.claim_if_vacant(self._config.node_id)
        if controller_epoch is None:
            return  # another broker was faster; the watch has been called
        controller = Controller(self._store, self._config, self._entropy)
        await controller.start_elected(controller_epoch)
        log.info("this broker is the controller", controller_epoch=controller_epoch)
        self.controller = controller

    async def _read_live_brokers(self) -> dict[int, LiveBroker]:
        live: dict[int, LiveBroker] = {}
        for name in await self._session.children(BROKER_IDS, self._may_have_changed.set):
            if not name.isdecimal():
                log.error("a node that is not the id of a broker is ignored", path=f"{BROKER_IDS}/{name}")
                continue
            node_id = int(name)
            try:
                # A registration that is replaced changes the children twice.
                data, stat = await self._session.get(broker_path(node_id))
                registration = decode_registration(node_id, data, stat)
            except NoNode:
                continue
            except MalformedMessage as problem:
                log.error("a registration is ignored", broker=node_id, reason=problem)
                continue
            live[node_id] = LiveBroker(
                registration.broker, registration.previous_broker_epochs, registration.metadata_level
            )
        return live

    async def _resign(self, reason: str) -> None:
        controller, self.controller = self.controller, None
        if controller is not None:
            log.info("this broker is not the controller any more", reason=reason)
            await controller.stop_writing()
