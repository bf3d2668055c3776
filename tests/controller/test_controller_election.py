"""What a controller reads of the registrations in ZooKeeper."""

from typing import Any

import pytest

from odradek.controller.controller_election import Election
from odradek.controller.registration import encode_registration
from odradek.metadata.zookeeper_layout import BROKER_IDS, broker_path
from odradek.metadata.zookeeper_store import ZooKeeperStore
from tests.controller.test_membership import BROKER, PROTOCOLS
from tests.metadata.inline_host import inline_host
from tests.simulation.simulated_zookeeper import Ensemble, SimulatedSession


async def test_node_that_is_not_the_id_of_a_broker_is_ignored(caplog: pytest.LogCaptureFixture) -> None:
    session = SimulatedSession(Ensemble())
    store = ZooKeeperStore(inline_host(), session)
    await store.cluster_id()
    await session.create(f"{BROKER_IDS}/broker-7")
    await session.create(broker_path(1), encode_registration(BROKER, "directory", [], 0, PROTOCOLS))
    config: Any = None
    election = Election(session, store, config, inline_host())
    assert set(await election._read_live_brokers()) == {1}
    assert "a node that is not the id of a broker is ignored" in caplog.text
    await store.close()
