"""Snapshots are taken while commits go on."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from odradek.host.zookeeper import CreateNode, Operation, ZooKeeperError, ZooKeeperSession
from odradek.metadata import zookeeper_snapshots
from odradek.metadata.changes import ProducerIdsAllocated
from odradek.metadata.store import CommitOutcome
from odradek.metadata.zookeeper_layout import HEAD, SNAPSHOTS, decode_head
from odradek.metadata.zookeeper_store import ZooKeeperStore
from tests.metadata.zookeeper_stores import SimulatedStores

SNAPSHOT_COMMITS = 10
WAIT_S = 20


class SlowSnapshots:
    """A session whose snapshots are written when a test says so; all other operations are carried out at once."""

    def __init__(self, session: ZooKeeperSession) -> None:
        self._session = session
        self.may_write = asyncio.Event()
        self.is_writing = asyncio.Event()
        self.fails = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    async def multi(self, operations: Sequence[Operation]) -> None:
        if any(isinstance(each, CreateNode) and each.path.startswith(SNAPSHOTS) for each in operations):
            self.is_writing.set()
            await self.may_write.wait()
            if self.fails:
                raise ZooKeeperError("no room")
        await self._session.multi(operations)


@pytest.fixture(autouse=True)
def few_commits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zookeeper_snapshots, "SNAPSHOT_COMMITS", SNAPSHOT_COMMITS)


class Scene:
    def __init__(self) -> None:
        self.stores = SimulatedStores()
        self.session = SlowSnapshots(self.stores.connect())
        session: Any = self.session
        self.store: ZooKeeperStore = self.stores.open_on(session)
        self.version = 0

    async def commit(self, count: int) -> None:
        async with asyncio.timeout(WAIT_S):
            epoch = await self.store.claim_controller(1) if not self.version else 1
            for _ in range(count):
                change = [ProducerIdsAllocated(self.version + 1)]
                outcome = await self.store.commit(change, expected_version=self.version, controller_epoch=epoch)
                assert outcome is CommitOutcome.COMMITTED
                self.version += 1

    @property
    def head(self) -> Any:
        return decode_head(self.stores.ensemble.nodes[HEAD].data)


async def test_commits_do_not_wait_for_a_snapshot() -> None:
    scene = Scene()
    await scene.commit(SNAPSHOT_COMMITS)
    async with asyncio.timeout(WAIT_S):
        await scene.session.is_writing.wait()
    await scene.commit(5)
    assert scene.head.snapshot_version == 0
    scene.session.may_write.set()
    await scene.store.settle()
    assert scene.head.snapshot_version == SNAPSHOT_COMMITS
    assert scene.head.version == SNAPSHOT_COMMITS + 5
    assert scene.head.commit_bytes > 0, "of the commits after the snapshot"
    await scene.commit(1)
    assert (await scene.stores.open().load()).next_producer_id == scene.version
    await scene.stores.close()


async def test_commits_and_a_snapshot_do_not_refuse_each_other() -> None:
    """Both replace the head: a snapshot whose head is always outdated would never be named."""
    scene = Scene()
    scene.session.may_write.set()
    await scene.commit(5 * SNAPSHOT_COMMITS)
    await scene.store.settle()
    assert scene.head.snapshot_version > 2 * SNAPSHOT_COMMITS
    assert (await scene.stores.open().load()).next_producer_id == scene.version
    await scene.stores.close()


async def test_failed_snapshot_is_taken_after_a_later_commit(caplog: pytest.LogCaptureFixture) -> None:
    scene = Scene()
    scene.session.may_write.set()
    scene.session.fails = True
    await scene.commit(SNAPSHOT_COMMITS)
    await scene.store.settle()
    assert "metadata snapshot failed" in caplog.text
    scene.session.fails = False
    await scene.commit(1)
    await scene.store.settle()
    assert scene.head.snapshot_version == SNAPSHOT_COMMITS + 1
    await scene.stores.close()


async def test_store_is_closed_while_a_snapshot_is_taken() -> None:
    scene = Scene()
    await scene.commit(SNAPSHOT_COMMITS)
    async with asyncio.timeout(WAIT_S):
        await scene.session.is_writing.wait()
        await scene.stores.close()
