"""The metadata store of a single broker: one SQLite file with a log of commits and a snapshot.

SQLite runs on the host's workers, one call at a time. The broker's controller and cache share one store object; the
lock on the log directory keeps other processes away from the file.
"""

from __future__ import annotations

import asyncio
import sqlite3
from typing import TYPE_CHECKING, NamedTuple, TypeVar, TypeVarTuple

from odradek.host.logs import get_logger
from odradek.metadata.change_codec import decode_changes
from odradek.metadata.commit_parts import encode_commit, join_parts
from odradek.metadata.disk_reserve import DiskReserve
from odradek.metadata.embedded_schema import (
    SCHEMA_VERSION,
    Transaction,
    convert_to_newest_schema,
    create_schema,
    has_schema,
    read_meta,
    read_version,
    write_meta,
    write_snapshot,
)
from odradek.metadata.recent_commits import RecentCommits
from odradek.metadata.snapshot import empty_image, image_as_changes, image_from_changes
from odradek.metadata.store import Commit, CommitOutcome, StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from odradek.host.host import Host
    from odradek.metadata.changes import Change
    from odradek.metadata.image import MetadataImage

log = get_logger(__name__)

FILE_NAME = "odradek-metadata.sqlite"
RESERVE_SUFFIX = "-reserve"
MIGRATED_SUFFIX = ".migrated"  # of the store of a broker that was migrated to a cluster

# A snapshot is due when the commits after the last one are this many, or larger than it and than this many bytes.
SNAPSHOT_COMMITS = 1000
SNAPSHOT_BYTES = 1 << 20


class SnapshotProgress(NamedTuple):
    """The commits from the snapshot to `version`: how many they are, and their size beside that of the snapshot."""

    version: int
    commit_count: int
    commit_bytes: int
    snapshot_bytes: int

    def after_commit(self, size_bytes: int) -> SnapshotProgress:
        return SnapshotProgress(
            self.version + 1, self.commit_count + 1, self.commit_bytes + size_bytes, self.snapshot_bytes
        )

    @property
    def is_snapshot_due(self) -> bool:
        is_large = self.commit_bytes > max(SNAPSHOT_BYTES, self.snapshot_bytes)
        return is_large or self.commit_count >= SNAPSHOT_COMMITS


T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")


class EmbeddedStore:
    def __init__(self, host: Host, path: str) -> None:
        self._host = host
        self._reserve = DiskReserve(host.disk, path + RESERVE_SUFFIX)
        self._path = path
        self._database: sqlite3.Connection | None = None
        self._is_newest_schema = False
        self._recent = RecentCommits()
        self._progress: SnapshotProgress | None = None  # None: to be read from the file
        self._one_at_a_time = asyncio.Lock()
        self._watchers: list[Callable[[], None]] = []

    async def cluster_id(self) -> str:
        """Creates the file if it is missing, but does not convert an earlier schema: the broker asks for the cluster id
        before it locks the directory, which another broker may be using."""
        return await self._run(self._with_readable_errors, lambda: read_meta(self._open())["cluster_id"])

    async def load(self) -> MetadataImage:
        return await self._run(self._with_readable_errors, self._load)

    async def changes_since(self, version: int) -> Sequence[Commit] | None:
        return await self._run(self._with_readable_errors, lambda: self._read_commits_after(version))

    def watch(self, callback: Callable[[], None]) -> None:
        self._watchers.append(callback)

    async def claim_controller(self, node_id: int) -> int:  # noqa: ARG002 - other stores record the controller
        return await self._run(self._write_despite_full_disk, self._claim)

    async def commit(self, changes: Sequence[Change], *, expected_version: int, controller_epoch: int) -> CommitOutcome:
        try:
            return await self._run(
                self._write_despite_full_disk, lambda: self._commit(changes, expected_version, controller_epoch)
            )
        finally:  # also after an exception: the commit may have happened
            for callback in self._watchers:
                callback()

    async def close(self) -> None:
        async with self._one_at_a_time:
            if self._database is not None:
                database, self._database = self._database, None
                await self._host.workers.run(database.close)

    async def _run(self, function: Callable[[*Arguments], T], *args: *Arguments) -> T:
        async with self._one_at_a_time:
            return await self._host.workers.run(function, *args)

    # On a worker

    def _with_readable_errors(self, read: Callable[[], T]) -> T:
        """A damaged file is not a bug: the error names the file and what to do."""
        try:
            return read()
        except (sqlite3.DatabaseError, KeyError, ValueError) as error:
            raise StoreError(self._unusable(str(error))) from error

    def _unusable(self, reason: str) -> str:
        return (
            f"{self._path} cannot be used as the metadata file: {reason}. Move it away, or use another data directory."
        )

    def _write_despite_full_disk(self, write: Callable[[], T]) -> T:
        """On a full disk, release the reserved space and retry: the commit may be the deletion that frees space.
        `StoreError` when that fails too, or for another error of the file."""
        try:
            try:
                result = write()
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_FULL or not self._reserve.release():
                    raise
                return write()
        except sqlite3.Error as error:
            raise StoreError(f"{self._path} cannot be written: {error}") from error
        self._reserve.hold()
        return result

    def _open(self) -> sqlite3.Connection:
        if self._database is None:
            try:
                database = self._host.disk.open_database(self._path)
            except sqlite3.DatabaseError as error:
                raise StoreError(self._unusable(str(error))) from error
            try:
                self._prepare(database)
            except BaseException:
                database.close()
                raise
            self._database = database
        return self._database

    def _prepare(self, database: sqlite3.Connection) -> None:
        try:
            is_new = not has_schema(database)
        except sqlite3.DatabaseError as error:
            raise StoreError(self._unusable(str(error))) from error
        if is_new:
            create_schema(database, self._host.entropy.uuid())
        found = int(read_meta(database)["schema_version"])
        if found > SCHEMA_VERSION:
            raise StoreError(
                f"{self._path} was written by a newer Odradek (schema {found}; this one knows {SCHEMA_VERSION}). "
                "Start the newer version, or use another data directory."
            )
        self._is_newest_schema = found == SCHEMA_VERSION

    def _open_with_newest_schema(self) -> sqlite3.Connection:
        database = self._open()
        if not self._is_newest_schema:
            convert_to_newest_schema(database)
            self._is_newest_schema = True
        return database

    def _load(self) -> MetadataImage:
        database = self._open_with_newest_schema()
        with _ReadTransaction(database):
            return _read_image(database)

    def _read_commits_after(self, version: int) -> Sequence[Commit] | None:
        database = self._open_with_newest_schema()
        recent = self._recent.after(version, read_version(database))
        if recent is not None:
            return recent
        with _ReadTransaction(database):
            if version < int(read_meta(database)["history_version"]):
                return None
            return _read_commits(database, version)

    def _claim(self) -> int:
        database = self._open_with_newest_schema()
        with Transaction(database):
            controller_epoch = int(read_meta(database)["controller_epoch"]) + 1
            write_meta(database, "controller_epoch", controller_epoch)
        return controller_epoch

    def _commit(self, changes: Sequence[Change], expected_version: int, controller_epoch: int) -> CommitOutcome:
        parts = encode_commit(changes)
        database = self._open_with_newest_schema()
        version = expected_version + 1
        with Transaction(database):
            meta = read_meta(database)
            if int(meta["controller_epoch"]) != controller_epoch:
                return CommitOutcome.FENCED
            if int(meta["version"]) != expected_version:
                return CommitOutcome.VERSION_CONFLICT
            database.executemany(
                "INSERT INTO commits VALUES (?, ?, ?, ?, ?)",
                [(version, number, len(parts), controller_epoch, part) for number, part in enumerate(parts)],
            )
            write_meta(database, "version", version)
        self._recent.add(Commit(version, controller_epoch, tuple(changes)))
        self._take_snapshot_if_due(database, version, sum(map(len, parts)))
        return CommitOutcome.COMMITTED

    def _take_snapshot_if_due(self, database: sqlite3.Connection, version: int, size_bytes: int) -> None:
        """After the commit of `version`. A snapshot that fails is taken after a later commit: the commits are enough to
        load from."""
        progress, self._progress = self._progress, None
        try:
            if progress is None or progress.version != version - 1:  # another store has committed in between
                progress = _read_progress(database)
            else:
                progress = progress.after_commit(size_bytes)
            self._progress = self._take_snapshot(database) if progress.is_snapshot_due else progress
        except sqlite3.Error as problem:
            log.warning("metadata snapshot failed", path=self._path, reason=problem)

    def _take_snapshot(self, database: sqlite3.Connection) -> SnapshotProgress:
        with Transaction(database):
            progress = _read_progress(database)
            if progress.is_snapshot_due:  # else another store has taken it
                meta = read_meta(database)
                image = _read_image(database)
                # The commits between the last two snapshots stay, for readers that are a little behind.
                history_version = int(meta["snapshot_version"])
                database.execute("DELETE FROM commits WHERE version <= ?", (history_version,))
                write_meta(database, "history_version", history_version)
                snapshot_bytes = write_snapshot(database, image.version, image_as_changes(image))
                progress = SnapshotProgress(image.version, 0, 0, snapshot_bytes)
        return progress


class _ReadTransaction:
    """Several reads of one state of the file. Takes no lock that a full disk could refuse."""

    __slots__ = ("_database",)

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    def __enter__(self) -> None:
        self._database.execute("BEGIN")

    def __exit__(self, *_: object) -> None:
        if self._database.in_transaction:
            self._database.execute("ROLLBACK")


def _read_image(database: sqlite3.Connection) -> MetadataImage:
    meta = read_meta(database)
    snapshot_version = int(meta["snapshot_version"])
    parts = database.execute("SELECT part, data FROM snapshot").fetchall()
    changes = decode_changes(join_parts(parts, int(meta["snapshot_parts"])))
    version = int(meta["version"])
    commits = _read_commits(database, snapshot_version)
    if [commit.version for commit in commits] != list(range(snapshot_version + 1, version + 1)):
        raise ValueError(f"commits between versions {snapshot_version} and {version} are missing")
    for commit in commits:
        changes += commit.changes
    return image_from_changes(empty_image(meta["cluster_id"]), changes, version)


def _read_commits(database: sqlite3.Connection, version: int) -> list[Commit]:
    rows = database.execute(
        "SELECT version, controller_epoch, part_count, part, data FROM commits"
        " WHERE version > ? ORDER BY version, part",
        (version,),
    )
    parts: dict[tuple[int, int, int], list[tuple[int, bytes]]] = {}
    for commit_version, controller_epoch, part_count, part, data in rows:
        parts.setdefault((commit_version, controller_epoch, part_count), []).append((part, data))
    return [
        Commit(commit_version, controller_epoch, decode_changes(join_parts(found, part_count)))
        for (commit_version, controller_epoch, part_count), found in parts.items()
    ]


def _read_progress(database: sqlite3.Connection) -> SnapshotProgress:
    meta = read_meta(database)
    count, size_bytes = database.execute(
        "SELECT count(DISTINCT version), coalesce(sum(length(data)), 0) FROM commits WHERE version > ?",
        (int(meta["snapshot_version"]),),
    ).fetchone()
    (snapshot_bytes,) = database.execute("SELECT coalesce(sum(length(data)), 0) FROM snapshot").fetchone()
    return SnapshotProgress(int(meta["version"]), count, size_bytes, snapshot_bytes)
