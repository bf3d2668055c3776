"""Users that are added before the brokers run: to the store of a single broker, and to that of a cluster."""

from dataclasses import replace
from pathlib import Path

import pytest

from odradek.configuration.broker_configs import BrokerConfig
from odradek.metadata.embedded_store import FILE_NAME, EmbeddedStore
from odradek.metadata.store import StoreError
from odradek.metadata.users import ScramKey
from odradek.security.scram_credentials import ScramMechanism
from odradek.server.user_store import add_user
from tests.metadata.inline_host import inline_host
from tests.simulation.simulated_cluster import SimulatedCluster

BOTH = ("SCRAM-SHA-256", "SCRAM-SHA-512")


async def test_a_single_broker_keeps_its_users_with_its_metadata(tmp_path: Path) -> None:
    config, host = BrokerConfig.from_properties({"log.dirs": str(tmp_path / "data")}), inline_host()
    await add_user(config, host, "admin", "secret", BOTH, 4096)
    await add_user(config, host, "admin", "other", BOTH[:1], 5000)
    store = EmbeddedStore(host, f"{tmp_path}/data/{FILE_NAME}")
    users = (await store.load()).users
    await store.close()
    assert {key: credential.iterations for key, credential in users.scram_credentials.items()} == {
        ScramKey("admin", ScramMechanism.SCRAM_SHA_256): 5000,
        ScramKey("admin", ScramMechanism.SCRAM_SHA_512): 4096,
    }
    with pytest.raises(StoreError, match="Username must not be empty"):
        await add_user(config, host, "", "secret", BOTH, 4096)


def test_a_cluster_gets_its_first_user_while_no_broker_runs() -> None:
    cluster = SimulatedCluster(1, broker_count=1)
    member = cluster.members[0]
    host = replace(cluster.host, connect_zookeeper=member._connect)
    cluster.run(add_user(member.config, host, "admin", "secret", BOTH, 4096))
    cluster.run(member.start())
    assert len(member.coordination.metadata.image.users.scram_credentials) == 2
    with pytest.raises(StoreError, match="--bootstrap-server"):
        cluster.run(add_user(member.config, host, "other", "secret", BOTH, 4096))
    cluster.run(member.stop())
    cluster.close()
