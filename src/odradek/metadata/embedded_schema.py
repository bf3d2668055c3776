"""The tables of the embedded store, and the conversion of files with an earlier schema. Blocks: runs on a worker.

Schema 2 is a log of commits and the newest snapshot, both in the format of `change_codec`. Schema 1 had one table for
each kind of thing; its files become a snapshot.
"""

from __future__ import annotations

import base64
import json
import uuid
from typing import TYPE_CHECKING

from odradek.configuration.config_types import ConfigResourceType
from odradek.metadata.change_codec import encode_changes
from odradek.metadata.changes import ClientQuotaChanged, ConfigsChanged, ProducerIdsAllocated, TopicCreated
from odradek.metadata.commit_parts import split_into_parts
from odradek.metadata.entities import PartitionImage, TopicImage
from odradek.metadata.topic_names import is_internal

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable

    from odradek.metadata.changes import Change

SCHEMA_VERSION = 2

_TABLES = (
    """CREATE TABLE commits (
        version INTEGER NOT NULL, part INTEGER NOT NULL, part_count INTEGER NOT NULL,
        controller_epoch INTEGER NOT NULL, data BLOB NOT NULL,
        PRIMARY KEY (version, part))""",
    "CREATE TABLE snapshot (part INTEGER PRIMARY KEY, data BLOB NOT NULL)",
)


class Transaction:
    """A transaction that writes: an exception in the block leaves the file as it was."""

    __slots__ = ("_database",)

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    def __enter__(self) -> None:
        self._database.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            if kind is None:
                self._database.execute("COMMIT")
        finally:  # a COMMIT that failed may leave the transaction open
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")


def has_schema(database: sqlite3.Connection) -> bool:
    (count,) = database.execute("SELECT count(*) FROM sqlite_master WHERE name = 'meta'").fetchone()
    return bool(count)


def create_schema(database: sqlite3.Connection, cluster_uuid: uuid.UUID) -> None:
    cluster_id = base64.urlsafe_b64encode(cluster_uuid.bytes).decode().rstrip("=")
    with Transaction(database):
        if has_schema(database):  # made by another process between the look and the lock
            return
        database.execute("CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID")
        for statement in _TABLES:
            database.execute(statement)
        _write_all_meta(database, cluster_id, version=0)
        write_snapshot(database, 0, ())


def read_meta(database: sqlite3.Connection) -> dict[str, str]:
    return dict(database.execute("SELECT name, value FROM meta").fetchall())


def read_version(database: sqlite3.Connection) -> int:
    row = database.execute("SELECT value FROM meta WHERE name = 'version'").fetchone()
    if row is None:
        raise ValueError("the metadata version is missing")
    return int(row[0])


def write_meta(database: sqlite3.Connection, name: str, value: int) -> None:
    database.execute("UPDATE meta SET value = ? WHERE name = ?", (str(value), name))


def write_snapshot(database: sqlite3.Connection, version: int, changes: Iterable[Change]) -> int:
    """Replaces the snapshot, and returns its size in bytes."""
    data = encode_changes(changes)
    parts = split_into_parts(data)
    database.execute("DELETE FROM snapshot")
    database.executemany("INSERT INTO snapshot VALUES (?, ?)", enumerate(parts))
    write_meta(database, "snapshot_version", version)
    write_meta(database, "snapshot_parts", len(parts))
    return len(data)


def convert_to_newest_schema(database: sqlite3.Connection) -> None:
    """Converts in one transaction, so that after a crash the file has the one schema or the other."""
    with Transaction(database):
        meta = read_meta(database)
        if int(meta["schema_version"]) == SCHEMA_VERSION:
            return
        changes = _read_schema_1(database, int(meta["next_producer_id"]))
        for table in ("topics", "partitions", "configs", "client_quotas"):
            database.execute(f"DROP TABLE {table}")
        for statement in _TABLES:
            database.execute(statement)
        database.execute("DELETE FROM meta")
        version = int(meta["version"])
        _write_all_meta(database, meta["cluster_id"], version)
        write_snapshot(database, version, changes)


def _write_all_meta(database: sqlite3.Connection, cluster_id: str, version: int) -> None:
    database.executemany(
        "INSERT INTO meta VALUES (?, ?)",
        (
            ("schema_version", str(SCHEMA_VERSION)),
            ("cluster_id", cluster_id),
            ("version", str(version)),
            ("controller_epoch", "0"),
            ("snapshot_version", str(version)),
            ("snapshot_parts", "0"),
            ("history_version", str(version)),
        ),
    )


def _read_schema_1(database: sqlite3.Connection, next_producer_id: int) -> list[Change]:
    partitions: dict[bytes, list[PartitionImage]] = {}
    rows = database.execute("SELECT * FROM partitions ORDER BY topic_id, partition_index")
    for topic_id, index, replicas, in_sync_replicas, leader, leader_epoch, partition_epoch in rows:
        partition = PartitionImage(
            index, _broker_ids(replicas), _broker_ids(in_sync_replicas), leader, leader_epoch, partition_epoch
        )
        partitions.setdefault(topic_id, []).append(partition)
    changes: list[Change] = [
        TopicCreated(
            TopicImage(name, uuid.UUID(bytes=topic_id), tuple(partitions.get(topic_id, ())), is_internal(name))
        )
        for topic_id, name in database.execute("SELECT topic_id, name FROM topics ORDER BY rowid")
    ]
    changes += [
        ConfigsChanged(ConfigResourceType(resource_type), resource_name, {name: value})
        for resource_type, resource_name, name, value in database.execute("SELECT * FROM configs")
    ]
    for entity, name, value in database.execute("SELECT * FROM client_quotas"):
        parts = frozenset((kind, part_name) for kind, part_name in json.loads(entity))
        changes.append(ClientQuotaChanged(parts, {name: value}))
    if next_producer_id:
        changes.append(ProducerIdsAllocated(next_producer_id))
    return changes


def _broker_ids(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(","))) if text else ()
