"""The embedded store: what was committed is there after a restart, and nothing else ever is."""

import sqlite3
import uuid
from collections.abc import Sequence
from pathlib import Path

import pytest

from odradek.configuration.config_types import ConfigResourceType
from odradek.metadata import embedded_store
from odradek.metadata.changes import (
    Change,
    ClientQuotaChanged,
    ConfigsChanged,
    ProducerIdsAllocated,
    TopicCreated,
)
from odradek.metadata.embedded_store import EmbeddedStore
from odradek.metadata.entities import PartitionImage, TopicImage
from odradek.metadata.image import MetadataImage
from odradek.metadata.store import CommitOutcome, StoreError
from tests.metadata.crashing_disk import Crash, CrashingDisk
from tests.metadata.inline_host import inline_host


async def close_and_load(store: EmbeddedStore) -> MetadataImage:
    await store.close()
    return await store.load()


PARTITION = PartitionImage(0, (0, 1), (0,), 0, 2, 3)
CHANGES: Sequence[Change] = (
    TopicCreated(TopicImage("t", uuid.UUID(int=1), (PARTITION,), is_internal=False)),
    ConfigsChanged(ConfigResourceType.TOPIC, "t", {"retention.ms": "1"}),
    ClientQuotaChanged(frozenset({("user", None)}), {"x": 1.5}),
    ProducerIdsAllocated(1000),
)


async def test_half_made_schema_never_shows(tmp_path: Path) -> None:
    path = str(tmp_path / "metadata")
    for statement in range(8):
        disk = CrashingDisk(statement)
        with pytest.raises(Crash):
            await EmbeddedStore(inline_host(disk), path).load()
        disk.close_databases()
    store = EmbeddedStore(inline_host(), path)
    assert (await store.load()).version == 0
    await store.close()


async def test_cluster_id_is_made_once(tmp_path: Path) -> None:
    store = EmbeddedStore(inline_host(), str(tmp_path / "metadata"))
    cluster_id = (await store.load()).cluster_id
    assert len(cluster_id) == 22
    assert (await close_and_load(store)).cluster_id == cluster_id
    await store.close()


async def test_file_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    path = str(tmp_path / "metadata")
    store = EmbeddedStore(inline_host(), path)
    await store.load()
    await store.close()
    database = sqlite3.connect(path)
    with database:
        database.execute("UPDATE meta SET value = '3' WHERE name = 'schema_version'")
    database.close()
    with pytest.raises(StoreError, match="was written by a newer Odradek"):
        await store.load()


async def test_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "metadata"
    path.write_bytes(b"this is a letter, not a database" * 100)
    with pytest.raises(StoreError, match="cannot be used as the metadata file"):
        await EmbeddedStore(inline_host(), str(path)).load()


async def test_failed_snapshot_does_not_fail_the_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(embedded_store, "SNAPSHOT_COMMITS", 1)
    store = EmbeddedStore(inline_host(), str(tmp_path / "metadata"))
    controller_epoch = await store.claim_controller(0)
    with monkeypatch.context() as without_room:
        without_room.setattr(embedded_store, "write_snapshot", fail)
        outcome = await store.commit(CHANGES, expected_version=0, controller_epoch=controller_epoch)
    assert outcome is CommitOutcome.COMMITTED
    assert (await close_and_load(store)).next_producer_id == 1000
    outcome = await store.commit([ProducerIdsAllocated(2000)], expected_version=1, controller_epoch=controller_epoch)
    assert outcome is CommitOutcome.COMMITTED
    assert (await close_and_load(store)).next_producer_id == 2000
    await store.close()


async def test_commit_that_the_file_cannot_take_is_a_store_error(tmp_path: Path) -> None:
    store = EmbeddedStore(inline_host(), str(tmp_path / "metadata"))
    controller_epoch = await store.claim_controller(0)
    assert store._database is not None
    store._database.execute("PRAGMA query_only = ON")
    with pytest.raises(StoreError, match="cannot be written: attempt to write a readonly database"):
        await store.commit(CHANGES, expected_version=0, controller_epoch=controller_epoch)
    await store.close()


async def test_missing_commit_is_reported_as_a_damaged_file(tmp_path: Path) -> None:
    path = str(tmp_path / "metadata")
    store = EmbeddedStore(inline_host(), path)
    controller_epoch = await store.claim_controller(0)
    for version in range(3):
        await store.commit([ProducerIdsAllocated(version)], expected_version=version, controller_epoch=controller_epoch)
    await store.close()
    database = sqlite3.connect(path)
    with database:
        database.execute("DELETE FROM commits WHERE version = 2")
    database.close()
    with pytest.raises(StoreError, match="cannot be used as the metadata file: commits between versions 0 and 3"):
        await store.load()
    await store.close()


class StatementLog:
    """The SQL statements of a store's connection, in their order."""

    def __init__(self, store: EmbeddedStore) -> None:
        self.statements: list[str] = []
        store._open().set_trace_callback(self.statements.append)

    def about(self, *words: str) -> list[str]:
        return [each for each in self.statements if all(word in each for word in words)]


async def test_own_commits_are_read_from_memory(tmp_path: Path) -> None:
    store = EmbeddedStore(inline_host(), str(tmp_path / "metadata"))
    epoch = await store.claim_controller(0)
    log = StatementLog(store)
    for version in range(20):
        changes = [ProducerIdsAllocated(version)]
        await store.commit(changes, expected_version=version, controller_epoch=epoch)
        (commit,) = await store.changes_since(version) or ()
        assert commit == (version + 1, epoch, tuple(changes))
    assert not log.about("SELECT", "part_count")
    commits = await store.changes_since(0)
    assert [commit.version for commit in commits or ()] == list(range(1, 21)), "the older ones are in the file"
    assert log.about("SELECT", "part_count")
    await store.close()


async def test_commits_of_another_store_between_own_ones_are_read_from_the_file(tmp_path: Path) -> None:
    one, other = (EmbeddedStore(inline_host(), str(tmp_path / "metadata")) for _ in range(2))
    epoch = await one.claim_controller(0)
    for version, store in enumerate((one, other, one, other, other)):
        outcome = await store.commit([ProducerIdsAllocated(version)], expected_version=version, controller_epoch=epoch)
        assert outcome is CommitOutcome.COMMITTED
        for reader in (one, other):
            for since in range(version + 1):
                found = await reader.changes_since(since)
                assert [(each.version, list(each.changes)) for each in found or ()] == [
                    (number + 1, [ProducerIdsAllocated(number)]) for number in range(since, version + 1)
                ]
    await one.close()
    await other.close()


async def test_refused_commit_is_not_read_from_memory(tmp_path: Path) -> None:
    one, other = (EmbeddedStore(inline_host(), str(tmp_path / "metadata")) for _ in range(2))
    epoch = await one.claim_controller(0)
    await other.commit([ProducerIdsAllocated(7)], expected_version=0, controller_epoch=epoch)
    outcome = await one.commit([ProducerIdsAllocated(8)], expected_version=0, controller_epoch=epoch)
    assert outcome is CommitOutcome.VERSION_CONFLICT
    (commit,) = await one.changes_since(0) or ()
    assert list(commit.changes) == [ProducerIdsAllocated(7)]
    await one.close()
    await other.close()


async def test_commits_since_the_snapshot_are_counted_once_per_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded_store, "SNAPSHOT_COMMITS", 10)
    path = str(tmp_path / "metadata")
    version = 0
    for count in (6, 24):  # the second store counts on from the commits of the first
        store = EmbeddedStore(inline_host(), path)
        epoch = await store.claim_controller(0)
        log = StatementLog(store)
        for _ in range(count):
            await store.commit([ProducerIdsAllocated(version)], expected_version=version, controller_epoch=epoch)
            version += 1
        snapshots = log.about("INSERT INTO snapshot")
        assert len(snapshots) == (0 if count == 6 else 3)
        assert len(log.about("count(DISTINCT version)")) <= 1 + len(snapshots)
        assert (await close_and_load(store)).version == version
        await store.close()
