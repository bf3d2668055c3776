"""Metadata of a single node in an SQLite file: nothing to install, one transaction for each commit.

All that touches the file runs on the host's workers, one piece at a time.
"""

from __future__ import annotations

import asyncio
import base64
import json
import sqlite3
import uuid
from typing import TYPE_CHECKING

from odradek.configuration.config_types import ConfigResourceType
from odradek.metadata import changes as change_types
from odradek.metadata.disk_reserve import DiskReserve
from odradek.metadata.image import ConfigResource, MetadataImage, PartitionImage, TopicImage
from odradek.metadata.store import StoreError
from odradek.metadata.topic_names import collision_key, is_internal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from odradek.host.host import Host
    from odradek.metadata.client_quotas import QuotaEntity

FILE_NAME = "odradek-metadata.sqlite"
RESERVE_SUFFIX = "-reserve"
SCHEMA_VERSION = 1

_SCHEMA = (
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE topics (topic_id BLOB NOT NULL UNIQUE, name TEXT NOT NULL UNIQUE)",
    """CREATE TABLE partitions (
        topic_id BLOB NOT NULL, partition_index INTEGER NOT NULL,
        replicas TEXT NOT NULL, in_sync_replicas TEXT NOT NULL,
        leader INTEGER NOT NULL, leader_epoch INTEGER NOT NULL, partition_epoch INTEGER NOT NULL,
        PRIMARY KEY (topic_id, partition_index)) WITHOUT ROWID""",
    """CREATE TABLE configs (
        resource_type INTEGER NOT NULL, resource_name TEXT NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL,
        PRIMARY KEY (resource_type, resource_name, name)) WITHOUT ROWID""",
    """CREATE TABLE client_quotas (
        entity TEXT NOT NULL, name TEXT NOT NULL, value REAL NOT NULL, PRIMARY KEY (entity, name)) WITHOUT ROWID""",
)


class EmbeddedStore:
    def __init__(self, host: Host, path: str, node_id: int) -> None:
        self._host = host
        self._reserve = DiskReserve(host.disk, path + RESERVE_SUFFIX)
        self._path = path
        self._node_id = node_id
        self._database: sqlite3.Connection | None = None
        self._one_at_a_time = asyncio.Lock()

    async def load(self) -> MetadataImage:
        async with self._one_at_a_time:
            return await self._host.workers.run(self._in_words, self._load)

    async def commit(self, changes: Sequence[change_types.Change], expected_version: int) -> bool:
        async with self._one_at_a_time:
            return await self._host.workers.run(self._commit_on_any_disk, changes, expected_version)

    async def close(self) -> None:
        async with self._one_at_a_time:
            if self._database is not None:
                database, self._database = self._database, None
                await self._host.workers.run(database.close)

    def _in_words(self, read: Callable[[], MetadataImage]) -> MetadataImage:
        """A damaged file is not a bug: say which file, and what to do."""
        try:
            return read()
        except (sqlite3.DatabaseError, KeyError, ValueError) as error:
            raise StoreError(self._complaint(str(error))) from error

    def _open(self) -> sqlite3.Connection:
        if self._database is None:
            try:
                database = self._host.disk.open_database(self._path)
            except sqlite3.DatabaseError as error:
                raise StoreError(self._complaint(str(error))) from error
            try:
                self._prepare(database)
            except BaseException:
                database.close()
                raise
            self._database = database
        return self._database

    def _prepare(self, database: sqlite3.Connection) -> None:
        try:
            has_schema = database.execute("SELECT count(*) FROM sqlite_master WHERE name = 'meta'").fetchone()[0]
        except sqlite3.DatabaseError as error:
            raise StoreError(self._complaint(str(error))) from error
        if not has_schema:
            self._create_schema(database)
            return
        found = int(_read_meta(database)["schema_version"])
        if found > SCHEMA_VERSION:
            raise StoreError(
                f"{self._path} was written by a newer Odradek (schema {found}; this one knows {SCHEMA_VERSION}). "
                "Start the newer version, or use another data directory."
            )

    def _create_schema(self, database: sqlite3.Connection) -> None:
        cluster_id = base64.urlsafe_b64encode(self._host.entropy.uuid().bytes).decode().rstrip("=")
        with _Transaction(database):
            for statement in _SCHEMA:
                database.execute(statement)
            database.executemany(
                "INSERT INTO meta VALUES (?, ?)",
                (
                    ("schema_version", str(SCHEMA_VERSION)),
                    ("cluster_id", cluster_id),
                    ("version", "0"),
                    ("next_producer_id", "0"),
                ),
            )

    def _complaint(self, reason: str) -> str:
        return (
            f"{self._path} cannot be used as the metadata file: {reason}. Move it away, or use another data directory."
        )

    def _load(self) -> MetadataImage:
        database = self._open()
        with _Transaction(database):
            meta = _read_meta(database)
            topics = _read_topics(database)
            configs: dict[ConfigResource, dict[str, str]] = {}
            for resource_type, resource_name, name, value in database.execute("SELECT * FROM configs"):
                resource = ConfigResource(ConfigResourceType(resource_type), resource_name)
                configs.setdefault(resource, {})[name] = value
            quotas: dict[QuotaEntity, dict[str, float]] = {}
            for entity, name, value in database.execute("SELECT * FROM client_quotas"):
                quotas.setdefault(_decode_entity(entity), {})[name] = value
        return MetadataImage(
            version=int(meta["version"]),
            cluster_id=meta["cluster_id"],
            controller_id=self._node_id,
            topics={topic.name: topic for topic in topics},
            topics_by_id={topic.topic_id: topic for topic in topics},
            topics_by_collision_key={key: topic.name for topic in topics if (key := collision_key(topic.name))},
            configs=configs,
            client_quotas=quotas,
            next_producer_id=int(meta["next_producer_id"]),
        )

    def _commit_on_any_disk(self, changes: Sequence[change_types.Change], expected_version: int) -> bool:
        """When the disk is full, with the room that was held for this: what frees some may be what is committed."""
        try:
            is_committed = self._commit(changes, expected_version)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_FULL or not self._reserve.release():
                raise
            return self._commit(changes, expected_version)
        self._reserve.hold()
        return is_committed

    def _commit(self, changes: Sequence[change_types.Change], expected_version: int) -> bool:
        database = self._open()
        with _Transaction(database):
            if int(_read_meta(database)["version"]) != expected_version:
                return False
            for change in changes:
                _write_change(database, change)
            _write_meta(database, "version", expected_version + 1)
        return True


class _Transaction:
    """All or nothing: whatever leaves the block by an exception leaves no trace in the file."""

    __slots__ = ("_database",)

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    def __enter__(self) -> None:
        self._database.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self._database.execute("COMMIT")
        elif self._database.in_transaction:
            self._database.execute("ROLLBACK")


def _read_meta(database: sqlite3.Connection) -> dict[str, str]:
    return dict(database.execute("SELECT name, value FROM meta").fetchall())


def _write_meta(database: sqlite3.Connection, name: str, value: int) -> None:
    database.execute("UPDATE meta SET value = ? WHERE name = ?", (str(value), name))


def _read_topics(database: sqlite3.Connection) -> list[TopicImage]:
    partitions: dict[bytes, list[PartitionImage]] = {}
    rows = database.execute("SELECT * FROM partitions ORDER BY topic_id, partition_index")
    for topic_id, index, replicas, in_sync_replicas, leader, leader_epoch, partition_epoch in rows:
        partitions.setdefault(topic_id, []).append(
            PartitionImage(
                index,
                _decode_brokers(replicas),
                _decode_brokers(in_sync_replicas),
                leader,
                leader_epoch,
                partition_epoch,
            )
        )
    return [
        TopicImage(name, uuid.UUID(bytes=topic_id), tuple(partitions.get(topic_id, ())), is_internal(name))
        for topic_id, name in database.execute("SELECT topic_id, name FROM topics ORDER BY rowid")
    ]


def _write_change(database: sqlite3.Connection, change: change_types.Change) -> None:
    match change:
        case change_types.TopicCreated(topic):
            database.execute("INSERT INTO topics VALUES (?, ?)", (topic.topic_id.bytes, topic.name))
            _write_partitions(database, topic.topic_id, topic.partitions)
        case change_types.TopicDeleted(topic_id):
            resource_type = int(ConfigResourceType.TOPIC)
            database.execute(
                "DELETE FROM configs WHERE resource_type = ? AND resource_name ="
                " (SELECT name FROM topics WHERE topic_id = ?)",
                (resource_type, topic_id.bytes),
            )
            database.execute("DELETE FROM partitions WHERE topic_id = ?", (topic_id.bytes,))
            database.execute("DELETE FROM topics WHERE topic_id = ?", (topic_id.bytes,))
        case change_types.PartitionsAdded(topic_id, partitions) | change_types.PartitionsChanged(topic_id, partitions):
            _write_partitions(database, topic_id, partitions)
        case change_types.ConfigsChanged(resource_type, resource_name, values):
            for name, text in values.items():
                key = (int(resource_type), resource_name, name)
                if text is None:
                    database.execute(
                        "DELETE FROM configs WHERE resource_type = ? AND resource_name = ? AND name = ?", key
                    )
                else:
                    database.execute("INSERT OR REPLACE INTO configs VALUES (?, ?, ?, ?)", (*key, text))
        case change_types.ClientQuotaChanged(entity, quotas):
            for name, quota in quotas.items():
                if quota is None:
                    database.execute(
                        "DELETE FROM client_quotas WHERE entity = ? AND name = ?", (_encode_entity(entity), name)
                    )
                else:
                    database.execute(
                        "INSERT OR REPLACE INTO client_quotas VALUES (?, ?, ?)", (_encode_entity(entity), name, quota)
                    )
        case change_types.ProducerIdsAllocated(next_producer_id):
            _write_meta(database, "next_producer_id", next_producer_id)


def _write_partitions(database: sqlite3.Connection, topic_id: uuid.UUID, partitions: Iterable[PartitionImage]) -> None:
    database.executemany(
        "INSERT OR REPLACE INTO partitions VALUES (?, ?, ?, ?, ?, ?, ?)",
        (
            (
                topic_id.bytes,
                partition.index,
                _encode_brokers(partition.replicas),
                _encode_brokers(partition.in_sync_replicas),
                partition.leader,
                partition.leader_epoch,
                partition.partition_epoch,
            )
            for partition in partitions
        ),
    )


def _encode_brokers(brokers: Iterable[int]) -> str:
    return ",".join(map(str, brokers))


def _decode_brokers(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(","))) if text else ()


def _encode_entity(entity: QuotaEntity) -> str:
    return json.dumps(sorted(entity, key=lambda part: part[0]))


def _decode_entity(text: str) -> QuotaEntity:
    return frozenset((kind, name) for kind, name in json.loads(text))
