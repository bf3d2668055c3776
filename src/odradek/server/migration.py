"""Moves the metadata of a single broker from its own store into a cluster's ZooKeeper. Logs are not touched.

The order makes an interrupted migration safe to repeat: the commit in ZooKeeper, then the cluster id of the log
directories, then the renaming of the broker's own store, without which the broker starts as before.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from odradek.host.zookeeper import ZooKeeperError
from odradek.log.log_directory import LOCK_FILE, LogDirectoryError, read_meta_properties, write_meta_properties
from odradek.metadata.embedded_store import FILE_NAME, MIGRATED_SUFFIX, RESERVE_SUFFIX, EmbeddedStore
from odradek.metadata.migration import decide_migration
from odradek.metadata.store import CommitOutcome, StoreError
from odradek.metadata.zookeeper_store import ZooKeeperStore
from odradek.server.cluster_member import zookeeper_settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.configuration.broker_configs import BrokerConfig
    from odradek.host.disk import Lock
    from odradek.host.host import Host
    from odradek.metadata.image import MetadataImage
    from odradek.metadata.migration import Migration


class Migrated(NamedTuple):
    migration: Migration
    cluster_id: str
    kept_file: str  # the broker's own store under its new name


async def migrate(config: BrokerConfig, host: Host, *, is_dry_run: bool) -> Migrated:
    """`StoreError` or `LogDirectoryError` when nothing can be migrated: the text says why and what to do."""
    if not config.zookeeper_connect:
        raise StoreError(
            "zookeeper.connect is not set: name the cluster's ZooKeeper, for example 127.0.0.1:2181/odradek"
        )
    paths = [host.disk.absolute_path(path) for path in config.log_dirs]
    file = f"{paths[0]}/{FILE_NAME}"
    if not host.disk.exists(file):
        hint = " (it was migrated before)" if host.disk.exists(file + MIGRATED_SUFFIX) else ""
        raise StoreError(f"{paths[0]} has no metadata of a single broker{hint}: check log.dirs")
    locks = _lock(paths, host)
    try:
        source = await _load_source(host, file)
        return await _migrate_to_zookeeper(config, host, paths, source, is_dry_run=is_dry_run)
    finally:
        for lock in locks:
            lock.release()


def _lock(paths: Sequence[str], host: Host) -> list[Lock]:
    locks: list[Lock] = []
    for path in paths:
        lock = host.disk.lock(f"{path}/{LOCK_FILE}")
        if lock is None:
            for held in locks:
                held.release()
            raise LogDirectoryError(f"{path} is used by a running broker: stop it first")
        locks.append(lock)
    return locks


async def _load_source(host: Host, file: str) -> MetadataImage:
    store = EmbeddedStore(host, file)
    try:
        return await store.load()
    finally:
        await store.close()


async def _migrate_to_zookeeper(
    config: BrokerConfig, host: Host, paths: Sequence[str], source: MetadataImage, *, is_dry_run: bool
) -> Migrated:
    _check_node_id(config, host, paths)
    try:
        session = host.connect_zookeeper(zookeeper_settings(config))
    except ZooKeeperError as problem:
        raise StoreError(str(problem)) from problem
    store = ZooKeeperStore(host, session, source.cluster_id)
    try:
        target = await store.load()
        migration = decide_migration(source, target, config.node_id)
        if migration.collisions:
            shown = ", ".join(migration.collisions[:5])
            more = f" and {len(migration.collisions) - 5} more" if len(migration.collisions) > 5 else ""
            raise StoreError(
                f"the cluster at {config.zookeeper_connect} has other values of the same names: {shown}{more}. "
                "Choose another chroot for a cluster of its own, or remove one of the two"
            )
        kept_file = f"{paths[0]}/{FILE_NAME}{MIGRATED_SUFFIX}"
        if not is_dry_run:
            await _commit(store, migration, target.version, config)
            _take_over_directories(host, paths, target.cluster_id, kept_file)
        return Migrated(migration, target.cluster_id, kept_file)
    finally:
        await store.close()


def _check_node_id(config: BrokerConfig, host: Host, paths: Sequence[str]) -> None:
    """Partitions are assigned to the node id."""
    for path in paths:
        found = read_meta_properties(path, host)
        if found is not None and found.node_id != config.node_id:
            raise LogDirectoryError(
                f"{path} belongs to node.id {found.node_id}, and the properties have {config.node_id}: set node.id to "
                f"{found.node_id}"
            )


async def _commit(store: ZooKeeperStore, migration: Migration, version: int, config: BrokerConfig) -> None:
    controller_epoch = await store.claim_if_vacant(config.node_id)
    if controller_epoch is None:
        controller_id = await store.claims.controller_id()
        raise StoreError(
            f"broker {controller_id} is the controller of the cluster: stop all its brokers, migrate, then start them"
        )
    if not migration.changes:
        return
    outcome = await store.commit(migration.changes, expected_version=version, controller_epoch=controller_epoch)
    if outcome is not CommitOutcome.COMMITTED:
        raise StoreError("the cluster's metadata was changed by another process: stop all its brokers, and try again")


def _take_over_directories(host: Host, paths: Sequence[str], cluster_id: str, kept_file: str) -> None:
    for path in paths:
        found = read_meta_properties(path, host)
        if found is not None and found.cluster_id != cluster_id:
            write_meta_properties(path, host, replace(found, cluster_id=cluster_id))
    file = f"{paths[0]}/{FILE_NAME}"
    host.disk.rename(file, kept_file)
    for suffix in (RESERVE_SUFFIX, "-wal", "-shm"):
        if host.disk.exists(file + suffix):
            host.disk.remove(file + suffix)
    host.disk.sync_directory(paths[0])
