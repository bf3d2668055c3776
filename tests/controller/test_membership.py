"""Registration in a simulated ZooKeeper: restarts, lost answers, expired sessions, and two brokers with one id."""

import asyncio
from collections.abc import Sequence

import pytest

from odradek.configuration.listeners import Endpoint
from odradek.controller.membership import Membership
from odradek.controller.registration import decode_registration
from odradek.host.clock import SystemClock
from odradek.host.zookeeper import NoNode
from odradek.metadata.entities import BrokerImage
from odradek.metadata.store import StoreError
from odradek.metadata.zookeeper_layout import CONTROLLER, broker_path
from odradek.metadata.zookeeper_store import ZooKeeperStore
from odradek.security.protocols import SecurityProtocol
from tests.metadata.inline_host import inline_host
from tests.simulation.simulated_zookeeper import Ensemble, SimulatedSession

BROKER = BrokerImage(1, {"PLAINTEXT": Endpoint("one", 9092)})
PROTOCOLS = {"PLAINTEXT": SecurityProtocol.PLAINTEXT}
LONG_MS = 60_000.0


class Life:
    """One process of a broker."""

    def __init__(self, ensemble: Ensemble) -> None:
        self.session = SimulatedSession(ensemble)
        self.store = ZooKeeperStore(inline_host(), self.session)
        self.epochs: list[int] = []
        self.membership = Membership(
            self.session,
            self.store.claims,
            SystemClock(),
            PROTOCOLS,
            self._note_epoch,
        )

    async def _note_epoch(self, broker_epochs: Sequence[int]) -> None:
        self.epochs = [*broker_epochs]

    async def join(self, directory_id: str = "directory", timeout_ms: float = LONG_MS) -> int:
        await self.store.cluster_id()
        await self.membership.join(BROKER, directory_id, [], timeout_ms=timeout_ms)
        return self.membership.broker_epoch


async def test_epoch_is_the_transaction_of_the_registration() -> None:
    ensemble = Ensemble()
    epoch = await Life(ensemble).join()
    assert ensemble.nodes[broker_path(1)].created_zxid == epoch


async def test_restart_on_the_same_directory_replaces_its_own_nodes_at_once() -> None:
    ensemble = Ensemble()
    first, second = Life(ensemble), Life(ensemble)
    old = await first.join()
    assert await first.store.claim_if_vacant(1) == 1
    assert await second.join() > old
    assert ensemble.nodes[broker_path(1)].ephemeral_owner == second.session.session_id
    assert CONTROLLER not in ensemble.nodes, "the claim of the process that ended"


async def test_restart_leaves_the_claim_of_another_broker() -> None:
    ensemble = Ensemble()
    first, second, other = Life(ensemble), Life(ensemble), Life(ensemble)
    await first.join()
    assert await other.store.claim_if_vacant(2) == 1
    await second.join()
    assert await second.store.claims.controller_id() == 2


async def test_two_brokers_with_one_id_are_an_error_for_the_second() -> None:
    ensemble = Ensemble()
    first, second = Life(ensemble), Life(ensemble)
    epoch = await first.join()
    with pytest.raises(StoreError, match=r"give this one another node\.id"):
        await second.join("another directory", timeout_ms=0)
    assert ensemble.nodes[broker_path(1)].created_zxid == epoch


async def test_broker_on_another_directory_waits_for_the_end_of_a_session() -> None:
    ensemble = Ensemble()
    first, second = Life(ensemble), Life(ensemble)
    old = await first.join()
    joining = asyncio.ensure_future(second.join("another directory"))
    await asyncio.sleep(0)
    first.session.expire()
    async with asyncio.timeout(60):
        assert await joining > old


@pytest.mark.parametrize("fault", ["lose_request", "lose_answer"])
async def test_registration_in_a_broken_connection_is_made_once(fault: str) -> None:
    ensemble = Ensemble()
    life = Life(ensemble)
    await life.store.cluster_id()
    setattr(life.session, fault, 0)
    await life.membership.join(BROKER, "directory", [], timeout_ms=LONG_MS)
    epoch = life.membership.broker_epoch
    node = ensemble.nodes[broker_path(1)]
    assert (node.created_zxid, node.ephemeral_owner) == (epoch, life.session.session_id)


async def test_broker_registers_again_in_every_new_session() -> None:
    ensemble = Ensemble()
    life, observer = Life(ensemble), SimulatedSession(ensemble)
    epochs = [await life.join()]

    async def previous_epochs() -> list[int]:
        data, stat = await observer.get(broker_path(1))
        return [*decode_registration(1, data, stat).previous_broker_epochs]

    for _ in range(3):
        is_created = asyncio.Event()
        life.session.expire()
        assert await observer.exists(broker_path(1), is_created.set) is None
        life.session.reconnect()
        async with asyncio.timeout(60):
            await is_created.wait()
        created = ensemble.nodes[broker_path(1)].created_zxid
        assert created > epochs[-1]
        assert await previous_epochs() == epochs, "no controller may have committed the last one"
        epochs.append(created)
    assert life.epochs == epochs
    life.membership.leave()
    await life.store.close()
    with pytest.raises(NoNode):
        await observer.get(broker_path(1))
