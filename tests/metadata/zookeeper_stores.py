"""Factories of ZooKeeper stores for the contract: on a real server, each in a chroot of its own, and on the simulated
one."""

from __future__ import annotations

import asyncio
import itertools
import os
from dataclasses import replace
from typing import Any

from odradek.host.host import Host
from odradek.host.kazoo_session import KazooSession
from odradek.host.workers import ThreadWorkers
from odradek.host.zookeeper import ConnectionLost, ZooKeeperSession, ZooKeeperSettings
from odradek.metadata.store import MetadataStore
from odradek.metadata.zookeeper_store import ZooKeeperStore
from tests.metadata.inline_host import CountingEntropy, inline_host
from tests.simulation.simulated_zookeeper import Ensemble, SimulatedSession

HISTORY_COMMITS = 50
SESSION_TIMEOUT_MS = 60_000  # of a busy machine; a test that ends a session says so
_numbers = itertools.count()

OPERATIONS = ("create", "set", "delete", "get", "exists", "children", "multi", "sync")


class DyingSession:
    """A session whose process dies at its n-th operation, before or after that is carried out."""

    def __init__(self, session: ZooKeeperSession, operations: int, *, after: bool) -> None:
        self._session = session
        self._operations = operations
        self._after = after

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._session, name)
        if name not in OPERATIONS:
            return attribute

        async def operate(*arguments: Any, **named: Any) -> Any:
            self._operations -= 1
            if self._operations < -1 or (self._operations == -1 and not self._after):
                raise ConnectionLost("dead")
            result = await attribute(*arguments, **named)
            if self._operations == -1:
                raise ConnectionLost("dead")
            return result

        return operate


class ZooKeeperStores:
    """`connect` opens a session; stores of one factory share their nodes."""

    history_commits = 2 * HISTORY_COMMITS

    def __init__(self) -> None:
        self.opened: list[ZooKeeperStore] = []
        self._entropy = CountingEntropy()

    def connect(self) -> ZooKeeperSession:
        raise NotImplementedError

    def host(self) -> Host:
        return replace(inline_host(), entropy=self._entropy)  # tokens of commits differ between stores

    def open(self) -> ZooKeeperStore:
        return self.open_on(self.connect())

    def open_on(self, session: ZooKeeperSession) -> ZooKeeperStore:
        store = ZooKeeperStore(self.host(), session)
        self.opened.append(store)
        return store

    def open_watching(self, store: MetadataStore) -> ZooKeeperStore:
        return self.open()

    def open_dying(self, operations: int, *, after: bool) -> ZooKeeperStore:
        return self.open_on(DyingSession(self.connect(), operations, after=after))

    def bury(self, store: MetadataStore) -> None: ...

    async def close(self) -> None:
        opened, self.opened = self.opened, []
        await asyncio.gather(*(store.close() for store in opened))


class RealStores(ZooKeeperStores):
    """Real threads, a real server, a chroot of two levels that the first session creates."""

    def __init__(self, server: str, workers: ThreadWorkers) -> None:
        super().__init__()
        self._server = server
        self._workers = workers
        self.settings = ZooKeeperSettings(
            connect=f"{server}/tests/{os.getpid()}-{next(_numbers)}",
            session_timeout_ms=SESSION_TIMEOUT_MS,
            connection_timeout_ms=SESSION_TIMEOUT_MS,
        )

    def connect(self) -> KazooSession:
        return KazooSession(self.settings)

    def host(self) -> Host:
        return replace(super().host(), workers=self._workers)

    def fresh(self) -> RealStores:
        return RealStores(self._server, self._workers)


class SimulatedStores(ZooKeeperStores):
    def __init__(self) -> None:
        super().__init__()
        self.ensemble = Ensemble()

    def connect(self) -> SimulatedSession:
        return SimulatedSession(self.ensemble)

    def fresh(self) -> SimulatedStores:
        return SimulatedStores()
