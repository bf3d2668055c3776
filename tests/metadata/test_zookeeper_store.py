"""The store of a cluster when connections break, sessions expire and the log is truncated, on a real ZooKeeper."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from odradek.host.kazoo_session import KazooSession, connect
from odradek.host.workers import ThreadWorkers
from odradek.host.zookeeper import NotPermitted, SessionEvent, ZooKeeperError, ZooKeeperSettings
from odradek.metadata import zookeeper_snapshots
from odradek.metadata.changes import ProducerIdsAllocated
from odradek.metadata.commit_parts import encode_commit
from odradek.metadata.store import CommitOutcome, StoreError
from odradek.metadata.zookeeper_layout import CHANGES, CONTROLLER, PARTS, SNAPSHOTS
from odradek.metadata.zookeeper_store import ZooKeeperStore
from odradek.testing import RunningZooKeeper
from tests.metadata.inline_host import inline_host
from tests.metadata.store_contract import commit_all, large_topic
from tests.metadata.zookeeper_proxy import Loss, ZooKeeperProxy
from tests.metadata.zookeeper_stores import RealStores

WAIT_S = 60


@pytest.fixture(scope="module")
def workers() -> Iterator[ThreadWorkers]:
    pool = ThreadWorkers(2)
    yield pool
    pool.close()


@pytest.fixture
async def stores(zookeeper_server: RunningZooKeeper, workers: ThreadWorkers) -> AsyncIterator[RealStores]:
    factory = RealStores(zookeeper_server.connect, workers)
    yield factory
    await factory.close()


@pytest.fixture
async def proxy(zookeeper_server: RunningZooKeeper) -> AsyncIterator[ZooKeeperProxy]:
    async with ZooKeeperProxy(zookeeper_server.host, zookeeper_server.port) as running:
        yield running


def through(proxy: ZooKeeperProxy, stores: RealStores) -> ZooKeeperStore:
    chroot = stores.settings.connect.partition("/")[2]
    return stores.open_on(KazooSession(replace(stores.settings, connect=f"{proxy.connect}/{chroot}")))


async def expire(session: KazooSession) -> None:
    """End the session on the server: a second client takes it over, and closes it."""
    from kazoo.client import KazooClient

    client_id = session._client.client_id

    def take_over() -> None:
        other = KazooClient(hosts=session._servers, client_id=client_id)
        other.start(timeout=WAIT_S)
        other.stop()
        other.close()

    await asyncio.to_thread(take_over)


def session_of(store: ZooKeeperStore) -> Any:
    return store._session


@pytest.mark.parametrize("loss", list(Loss))
async def test_commit_in_a_broken_connection_is_made_once(
    stores: RealStores, proxy: ZooKeeperProxy, loss: Loss
) -> None:
    store = through(proxy, stores)
    epoch = await store.claim_controller(1)
    for version in range(3):
        proxy.lose(loss)
        change = [ProducerIdsAllocated(version + 1)]
        outcome = await store.commit(change, expected_version=version, controller_epoch=epoch)
        assert outcome is CommitOutcome.COMMITTED
        assert proxy.losses == version + 1
    found = await stores.open().changes_since(0)
    assert found is not None
    assert [list(each.changes) for each in found] == [[ProducerIdsAllocated(number)] for number in (1, 2, 3)]


@pytest.mark.parametrize("loss", list(Loss))
async def test_large_commit_in_a_broken_connection_is_whole(
    stores: RealStores, proxy: ZooKeeperProxy, loss: Loss
) -> None:
    store = through(proxy, stores)
    change = large_topic()
    assert len(encode_commit([change])) > 1
    image = await store.load()
    epoch = await store.claim_controller(1)
    proxy.lose(loss)  # in the first of the parts
    outcome = await store.commit([change], expected_version=0, controller_epoch=epoch)
    assert outcome is CommitOutcome.COMMITTED
    assert proxy.losses == 1
    assert await stores.open().load() == image.apply(change)


@pytest.mark.parametrize("loss", list(Loss))
async def test_claim_in_a_broken_connection_is_made_once(stores: RealStores, proxy: ZooKeeperProxy, loss: Loss) -> None:
    store = through(proxy, stores)
    await store.cluster_id()
    proxy.lose(loss)
    assert await store.claim_if_vacant(7) == 1
    assert proxy.losses == 1
    assert await store.claims.controller_id() == 7
    assert await stores.open().claim_if_vacant(8) is None


async def test_expired_session_is_an_event_and_its_nodes_are_gone(stores: RealStores) -> None:
    session = stores.connect()
    events: list[SessionEvent] = []
    has_new_session = asyncio.Event()
    session.subscribe(events.append)
    await session.start()
    first_id = session.session_id
    await session.create("/ephemeral", is_ephemeral=True)
    session.subscribe(lambda event: has_new_session.set() if event is SessionEvent.CONNECTED else None)
    await expire(session)
    async with asyncio.timeout(WAIT_S):
        await has_new_session.wait()
    assert events == [
        SessionEvent.CONNECTED, SessionEvent.DISCONNECTED, SessionEvent.EXPIRED, SessionEvent.CONNECTED,
    ]  # fmt: skip
    assert session.session_id not in (0, first_id)
    assert await session.exists("/ephemeral") is None
    await session.close()


async def test_controller_whose_session_expired_is_refused(stores: RealStores) -> None:
    first, second = stores.open(), stores.open()
    old = await first.claim_if_vacant(1)
    assert old is not None
    assert await second.claim_if_vacant(2) is None, "there is a controller"
    vacant = asyncio.Event()
    await session_of(second).exists(CONTROLLER, vacant.set)
    await expire(session_of(first))
    async with asyncio.timeout(WAIT_S):
        await vacant.wait()
    new = await second.claim_if_vacant(2)
    assert new == old + 1
    change = [ProducerIdsAllocated(1)]
    assert await first.commit(change, expected_version=0, controller_epoch=old) is CommitOutcome.FENCED
    assert await second.commit(change, expected_version=0, controller_epoch=new) is CommitOutcome.COMMITTED


@pytest.mark.more
async def test_slow_reader_survives_snapshots_and_little_is_left(
    stores: RealStores, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zookeeper_snapshots, "SNAPSHOT_COMMITS", 10)
    store, reader = stores.open(), stores.open()
    first = await store.load()
    changes = [[ProducerIdsAllocated(number)] for number in range(1, 65)]
    committing = asyncio.ensure_future(commit_all(store, first, changes))
    while not committing.done():
        image = await reader.load()
        assert image.next_producer_id == image.version
        found = await reader.changes_since(0)
        assert found is None or [each.version for each in found] == list(range(1, len(found) + 1))
    assert await committing == await reader.load()
    assert await reader.changes_since(0) is None
    session = session_of(store)
    assert len(await session.children(CHANGES)) < 2 * 10
    assert len(await session.children(SNAPSHOTS)) == 1


async def test_parts_of_commits_that_were_never_made_are_removed(
    stores: RealStores, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zookeeper_snapshots, "SNAPSHOT_COMMITS", 4)
    store = stores.open()
    epoch = await store.claim_controller(1)
    dying = stores.open_dying(6, after=True)
    with pytest.raises(StoreError):
        await dying.commit([large_topic()], expected_version=0, controller_epoch=epoch)
    session = session_of(store)
    assert len(await session.children(PARTS)) == 1, "the commit has written parts"
    await commit_all(store, await store.load(), [[ProducerIdsAllocated(number)] for number in range(4)])
    assert await session.children(PARTS) == []


@pytest.mark.more
@pytest.mark.timeout(300)
async def test_commit_is_made_once_though_the_server_is_killed(stores: RealStores) -> None:
    from odradek.testing import zookeeper

    with zookeeper() as server:
        session = KazooSession(replace(stores.settings, connect=server.connect, session_timeout_ms=10_000))
        store = ZooKeeperStore(inline_host(), session)
        epoch = await store.claim_controller(1)
        change = [ProducerIdsAllocated(1)]

        async def commit() -> None:
            while not await store.changes_since(0):
                await store.commit(change, expected_version=0, controller_epoch=epoch)

        server.kill()
        starting = asyncio.ensure_future(asyncio.to_thread(server.start))
        found = None
        while not found:
            with suppress(StoreError):  # the server may be away for longer than a request waits
                await commit()
                found = await store.changes_since(0)
        assert [list(each.changes) for each in found] == [change]
        await starting
        await store.close()


async def test_nodes_can_be_read_and_changed_by_their_owner_only(stores: RealStores) -> None:
    settings = replace(stores.settings, connect=stores.settings.connect.replace("/tests/", "/restricted-"))
    store = stores.open_on(KazooSession(replace(settings, auth="digest:odradek:secret", restricts_access=True)))
    epoch = await store.claim_controller(1)
    change = [ProducerIdsAllocated(1)]
    assert await store.commit(change, expected_version=0, controller_epoch=epoch) is CommitOutcome.COMMITTED
    stranger = stores.open_on(KazooSession(settings))
    with pytest.raises(StoreError) as hidden:
        await stranger.load()
    assert isinstance(hidden.value.__cause__, NotPermitted)
    with pytest.raises(StoreError) as refused:
        await stranger.commit(change, expected_version=1, controller_epoch=epoch)
    assert isinstance(refused.value.__cause__, NotPermitted)


async def test_chroots_are_clusters_of_their_own(stores: RealStores) -> None:
    first, second = stores.open(), stores.fresh().open()
    epoch = await first.claim_controller(1)
    await first.commit([ProducerIdsAllocated(1)], expected_version=0, controller_epoch=epoch)
    assert (await second.load()).version == 0
    await second.close()


async def test_zookeeper_that_does_not_answer_is_named() -> None:
    settings = ZooKeeperSettings(connect="127.0.0.1:1/chroot", connection_timeout_ms=200)
    store = ZooKeeperStore(inline_host(), KazooSession(settings))
    with pytest.raises(StoreError, match=r"ZooKeeper at 127\.0\.0\.1:1 did not answer within 0\.2 s"):
        await store.cluster_id()
    await store.close()


async def test_unusable_settings_are_refused_before_connecting() -> None:
    with pytest.raises(ZooKeeperError, match="pure-sasl"):
        connect(ZooKeeperSettings(connect="127.0.0.1:1", auth="sasl:user:password"))
