"""A metadata store on a shared table of keys and values, in memory: what several brokers would use.

The table knows three operations: read a key, write a key, and write a key if its revision is the expected one. Values
are limited in size, so a commit is written in parts under keys of its own, and becomes visible when the head names it.
The head is replaced by compare-and-set, which orders commits and claims.
"""

import asyncio
import enum
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from odradek.metadata.change_codec import decode_changes, encode_changes
from odradek.metadata.changes import Change
from odradek.metadata.commit_parts import encode_commit, join_parts, split_into_parts
from odradek.metadata.image import MetadataImage
from odradek.metadata.snapshot import empty_image, image_as_changes, image_from_changes
from odradek.metadata.store import Commit, CommitOutcome

MAX_VALUE_BYTES = 1 << 20
HEAD = "head"
CLUSTER_ID = "key-value-cluster"

T = TypeVar("T")


class Disconnected(Exception):
    """The connection broke; the operation may or may not have been carried out."""


@dataclass
class Table:
    """The state that all stores share. `late` are the operations of broken connections that have not arrived yet."""

    values: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    watchers: list[Callable[[], None]] = field(default_factory=list)
    late: list[Callable[[], object]] = field(default_factory=list)
    key_count: int = 0

    def compare_and_set(self, key: str, expected_revision: int, value: bytes) -> bool:
        revision, _ = self.values.get(key, (0, b""))
        if revision != expected_revision:
            return False
        self.values[key] = (revision + 1, value)
        for watcher in self.watchers:
            watcher()
        return True


class Failure(enum.Enum):
    """When the operation that raises is carried out."""

    NEVER = enum.auto()
    BEFORE = enum.auto()
    LATE = enum.auto()  # some time after the exception


class Connection:
    """One client of the table. `failing_operation` counts down; at 0 the operation raises, and so does every later one
    if `is_dying`."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self.failing_operation: int | None = None
        self.failure = Failure.NEVER
        self.is_dying = False

    async def read(self, key: str) -> tuple[int, bytes] | None:
        await asyncio.sleep(0)
        if self._is_failing():
            raise Disconnected
        return self._table.values.get(key)

    async def write(self, key: str, value: bytes) -> None:
        assert len(value) <= MAX_VALUE_BYTES
        await self._operate(lambda: self._table.values.__setitem__(key, (0, value)))

    async def compare_and_set(self, key: str, expected_revision: int, value: bytes) -> bool:
        assert len(value) <= MAX_VALUE_BYTES
        return await self._operate(lambda: self._table.compare_and_set(key, expected_revision, value))

    def new_key(self) -> str:
        self._table.key_count += 1
        return f"parts-{self._table.key_count}"

    def watch(self, callback: Callable[[], None]) -> None:
        self._table.watchers.append(callback)

    async def _operate(self, operation: Callable[[], T]) -> T:
        await asyncio.sleep(0)
        if not self._is_failing():
            return operation()
        if self.failure is Failure.BEFORE:
            operation()
        elif self.failure is Failure.LATE:
            self._table.late.append(operation)
        raise Disconnected

    def _is_failing(self) -> bool:
        if self.failing_operation is None:
            return False
        self.failing_operation -= 1
        if self.failing_operation >= 0:
            return False
        if self.is_dying:
            if self.failing_operation < -1:
                self.failure = Failure.NEVER
        else:
            self.failing_operation = None
        return True


class KeyValueStore:
    """`history` is how many commits stay readable behind a snapshot."""

    def __init__(self, table: Table, history: int = 100) -> None:
        self.connection = Connection(table)
        self._history = history

    async def cluster_id(self) -> str:
        return CLUSTER_ID

    async def load(self) -> MetadataImage:
        head, _ = await self._head()
        changes = await self._read_changes(head["snapshot"])
        for version, _, parts in head["commits"]:
            if version > head["snapshot_version"]:
                changes += await self._read_changes(parts)
        return image_from_changes(empty_image(CLUSTER_ID), changes, head["version"])

    async def changes_since(self, version: int) -> Sequence[Commit] | None:
        head, _ = await self._head()
        if version < head["version"] - len(head["commits"]):
            return None
        return [
            Commit(commit_version, controller_epoch, await self._read_changes(parts))
            for commit_version, controller_epoch, parts in head["commits"]
            if commit_version > version
        ]

    def watch(self, callback: Callable[[], None]) -> None:
        self.connection.watch(callback)

    async def claim_controller(self, node_id: int) -> int:
        while True:
            head, revision = await self._head()
            head["controller_id"] = node_id
            head["controller_epoch"] += 1
            if await self.connection.compare_and_set(HEAD, revision, json.dumps(head).encode()):
                return int(head["controller_epoch"])

    async def commit(self, changes: Sequence[Change], *, expected_version: int, controller_epoch: int) -> CommitOutcome:
        parts: list[str] = []
        while True:
            head, revision = await self._head()
            if head["controller_epoch"] != controller_epoch:
                return CommitOutcome.FENCED
            if head["version"] != expected_version:
                return CommitOutcome.VERSION_CONFLICT
            parts = parts or await self._write_parts(encode_commit(changes))
            head["version"] += 1
            head["commits"].append((head["version"], controller_epoch, parts))
            if len(head["commits"]) >= 2 * self._history:
                await self._compact(head, changes)
            if await self.connection.compare_and_set(HEAD, revision, json.dumps(head).encode()):
                return CommitOutcome.COMMITTED

    async def close(self) -> None: ...

    async def _compact(self, head: Any, changes: Sequence[Change]) -> None:
        image = (await self.load()).apply_all(changes)
        head["snapshot"] = await self._write_parts(split_into_parts(encode_changes(image_as_changes(image))))
        head["snapshot_version"] = head["version"]
        head["commits"] = head["commits"][-self._history :]

    async def _head(self) -> tuple[Any, int]:
        found = await self.connection.read(HEAD)
        if found is None:
            empty = {"version": 0, "controller_id": -1, "controller_epoch": 0, "snapshot_version": 0}
            return {**empty, "snapshot": [], "commits": []}, 0
        revision, data = found
        return json.loads(data), revision

    async def _write_parts(self, parts: Sequence[bytes]) -> list[str]:
        keys = []
        for part in parts:
            keys.append(self.connection.new_key())
            await self.connection.write(keys[-1], part)
        return keys

    async def _read_changes(self, keys: Sequence[str]) -> list[Change]:
        if not keys:
            return []
        parts = []
        for number, key in enumerate(keys):
            found = await self.connection.read(key)
            assert found is not None
            parts.append((number, found[1]))
        return decode_changes(join_parts(parts, len(keys)))
