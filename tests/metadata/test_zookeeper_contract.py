"""The store of a cluster passes the contract, on a real ZooKeeper and on the simulated one."""

from collections.abc import AsyncIterator, Iterator

import pytest

from odradek.host.workers import ThreadWorkers
from odradek.metadata import zookeeper_snapshots
from odradek.testing import RunningZooKeeper
from tests.metadata.store_contract import StoreContract
from tests.metadata.zookeeper_stores import HISTORY_COMMITS, RealStores, SimulatedStores


@pytest.fixture(scope="module")
def workers() -> Iterator[ThreadWorkers]:
    pool = ThreadWorkers(2)
    yield pool
    pool.close()


@pytest.fixture(autouse=True)
def short_history(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zookeeper_snapshots, "SNAPSHOT_COMMITS", HISTORY_COMMITS)


class TestZooKeeperStore(StoreContract):
    @pytest.fixture
    async def factory(self, zookeeper_server: RunningZooKeeper, workers: ThreadWorkers) -> AsyncIterator[RealStores]:
        stores = RealStores(zookeeper_server.connect, workers)
        yield stores
        await stores.close()


class TestZooKeeperStoreOnTheModel(StoreContract):
    @pytest.fixture
    async def factory(self) -> AsyncIterator[SimulatedStores]:
        stores = SimulatedStores()
        yield stores
        await stores.close()
