"""Writes SCRAM users into the metadata of a broker that is not running: the first user of a cluster must exist before
anybody can authenticate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.controller.decisions.scram_credentials import ScramUpsertion, decide_scram_alterations
from odradek.controller.decisions.topics import Cluster
from odradek.host.zookeeper import ZooKeeperError
from odradek.log.log_directory import LOCK_FILE, LogDirectoryError, make_durable_directory
from odradek.metadata.embedded_store import FILE_NAME, EmbeddedStore
from odradek.metadata.store import CommitOutcome, StoreError
from odradek.metadata.zookeeper_store import ZooKeeperStore
from odradek.protocol.errors import ErrorCode
from odradek.security.scram_credentials import MECHANISMS_BY_NAME, salted_password
from odradek.server.cluster_member import zookeeper_settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.configuration.broker_configs import BrokerConfig
    from odradek.host.host import Host


async def add_user(
    config: BrokerConfig, host: Host, user: str, password: str, mechanisms: Sequence[str], iterations: int
) -> str:
    """Add the user, or replace its credentials; where it was written. `StoreError` or `LogDirectoryError` when a broker
    is running, or when the credential is refused."""
    upsertions = []
    for name in mechanisms:
        mechanism, salt = MECHANISMS_BY_NAME[name], host.entropy.nonce().encode()
        salted = salted_password(mechanism, password, salt, iterations)
        upsertions.append(ScramUpsertion(user, mechanism, iterations, salt, salted))
    if config.zookeeper_connect:
        return await _add_to_cluster(config, host, upsertions)
    return await _add_to_single_broker(config, host, upsertions)


async def _add_to_single_broker(config: BrokerConfig, host: Host, upsertions: Sequence[ScramUpsertion]) -> str:
    directory = host.disk.absolute_path(config.log_dirs[0])
    make_durable_directory(directory, host)
    lock = host.disk.lock(f"{directory}/{LOCK_FILE}")
    if lock is None:
        raise LogDirectoryError(
            f"{directory} is used by a running broker: add the user with --bootstrap-server, or stop the broker first"
        )
    try:
        store = EmbeddedStore(host, f"{directory}/{FILE_NAME}")
        try:
            await store.load()
            await _commit(store, config, host, upsertions, await store.claim_controller(config.node_id))
        finally:
            await store.close()
    finally:
        lock.release()
    return directory


async def _add_to_cluster(config: BrokerConfig, host: Host, upsertions: Sequence[ScramUpsertion]) -> str:
    try:
        session = host.connect_zookeeper(zookeeper_settings(config))
    except ZooKeeperError as problem:
        raise StoreError(str(problem)) from problem
    store = ZooKeeperStore(host, session)
    try:
        controller_epoch = await store.claim_if_vacant(config.node_id)
        if controller_epoch is None:
            raise StoreError("brokers of the cluster are running: add the user with --bootstrap-server")
        await _commit(store, config, host, upsertions, controller_epoch)
    finally:
        await store.close()
    return str(config.zookeeper_connect)


async def _commit(
    store: EmbeddedStore | ZooKeeperStore,
    config: BrokerConfig,
    host: Host,
    upsertions: Sequence[ScramUpsertion],
    controller_epoch: int,
) -> None:
    for upsertion in upsertions:  # a request may name a user once
        image = await store.load()
        cluster = Cluster(image, config, host.entropy.random_below, host.entropy.uuid)
        (result,), changes = decide_scram_alterations([upsertion], cluster)
        if result.error is not ErrorCode.NONE:
            raise StoreError(f"user {upsertion.user}: {result.message}")
        outcome = await store.commit(changes, expected_version=image.version, controller_epoch=controller_epoch)
        if outcome is not CommitOutcome.COMMITTED:
            raise StoreError("another process has changed the metadata: stop all brokers, and try again")
