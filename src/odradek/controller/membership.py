"""This broker as a member of its cluster: the ephemeral node `/brokers/ids/N`, created again in every new session."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from odradek.controller.registration import decode_registration, encode_registration
from odradek.host.logs import get_logger
from odradek.host.zookeeper import (
    ConnectionLost,
    NodeExists,
    NoNode,
    SessionClosed,
    SessionEvent,
    SessionExpired,
    ZooKeeperError,
)
from odradek.metadata.store import StoreError
from odradek.metadata.zookeeper_layout import broker_path
from odradek.protocol.malformed import MalformedMessage
from odradek.protocol.sentinels import NO_BROKER_EPOCH

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from odradek.host.clock import Clock
    from odradek.host.zookeeper import ZooKeeperSession
    from odradek.metadata.entities import BrokerImage
    from odradek.metadata.zookeeper_claim import ControllerClaim
    from odradek.security.protocols import SecurityProtocol

log = get_logger(__name__)

RETRY_PAUSE_S = 0.2
MOST_NAMED_EPOCHS = 200  # of registrations that no controller may have committed


class Membership:
    def __init__(
        self,
        session: ZooKeeperSession,
        claims: ControllerClaim,
        clock: Clock,
        protocols: Mapping[str, SecurityProtocol],
        after_registration: Callable[[Sequence[int]], Awaitable[None]],
    ) -> None:
        """`protocols` are those of the listeners. `after_registration` is awaited with each new broker
        epoch, which follows those of the earlier registrations since which no records were lost."""
        self._session = session
        self._claims = claims
        self._clock = clock
        self._protocols = protocols
        self._after_registration = after_registration
        self._has_new_session = asyncio.Event()
        self._keeper: asyncio.Task[None] | None = None
        self._previous_epochs: tuple[int, ...] = ()  # of earlier registrations, also of earlier processes
        self.broker_epoch = NO_BROKER_EPOCH
        """The epoch of the present registration."""

    async def join(
        self, broker: BrokerImage, directory_id: str, previous_broker_epochs: Sequence[int], *, timeout_ms: float
    ) -> None:
        """Register, and register again whenever a session has expired. `StoreError` when another process has registered
        with this broker's id, and stays for longer than `timeout_ms`."""
        self._session.subscribe(self._follow_session)
        self._previous_epochs = tuple(previous_broker_epochs)
        await self._register(broker, directory_id, timeout_ms)
        self._keeper = asyncio.ensure_future(self._keep_registered(broker, directory_id, timeout_ms))

    def leave(self) -> None:
        """Register no more. The end of the session removes the registration."""
        if self._keeper is not None:
            self._keeper.cancel()

    def _follow_session(self, event: SessionEvent) -> None:
        if event is SessionEvent.EXPIRED:
            self._has_new_session.set()

    async def _keep_registered(self, broker: BrokerImage, directory_id: str, timeout_ms: float) -> None:
        while True:
            await self._has_new_session.wait()
            self._has_new_session.clear()
            try:
                await self._register(broker, directory_id, timeout_ms)
                log.info("registered again in a new ZooKeeper session", broker_epoch=self.broker_epoch)
            except SessionClosed:
                return
            except (StoreError, ZooKeeperError, MalformedMessage) as problem:
                log.error("this broker could not register again; retrying", reason=problem)
                await asyncio.sleep(RETRY_PAUSE_S)
                self._has_new_session.set()

    async def _register(self, broker: BrokerImage, directory_id: str, timeout_ms: float) -> None:
        """The registration names those before it: the broker has lost no records in between, and it does not know
        which of them a controller has committed last."""
        self.broker_epoch = await self._create_node(broker, directory_id, timeout_ms)
        self._previous_epochs = (*self._previous_epochs, self.broker_epoch)[-MOST_NAMED_EPOCHS:]
        await self._after_registration(self._previous_epochs)

    async def _create_node(self, broker: BrokerImage, directory_id: str, timeout_ms: float) -> int:
        """The broker epoch."""
        path = broker_path(broker.node_id)
        deadline_ms = self._clock.monotonic_ms() + timeout_ms
        while True:
            now_ms = self._clock.now_ms()
            data = encode_registration(broker, directory_id, self._previous_epochs, now_ms, self._protocols)
            try:
                return (await self._session.create(path, data, is_ephemeral=True)).created_zxid
            except NodeExists:
                broker_epoch = await self._follow_present(path, broker.node_id, directory_id)
                if broker_epoch is not None:
                    return broker_epoch
            except (ConnectionLost, SessionExpired) as problem:
                log.warning("registration interrupted; retrying", reason=type(problem).__name__)
            if self._clock.monotonic_ms() > deadline_ms:
                raise StoreError(
                    f"broker {broker.node_id} is registered in ZooKeeper ({path}) by another process: "
                    "stop that broker, or give this one another node.id"
                )
            await asyncio.sleep(RETRY_PAUSE_S)

    async def _follow_present(self, path: str, node_id: int, directory_id: str) -> int | None:
        """The broker epoch when the node is of this session: the answer to its creation was lost. A node of an earlier
        process on this log directory is removed."""
        try:
            data, stat = await self._session.get(path)
            if stat.ephemeral_owner == self._session.session_id:
                return stat.created_zxid
            if directory_id and decode_registration(node_id, data, stat).directory_id == directory_id:
                await self._session.delete(path, stat.version)
                await self._claims.remove_claim_of(node_id)
        except NoNode:
            return None
        return None
