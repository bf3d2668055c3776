"""A disk in memory that can lose power. What was not synced may be lost in part: writes may be missing or torn, file
sizes may have grown over data that never arrived, and names last only once their directory was synced (POSIX)."""

import errno
import os
import random
import sqlite3
from collections.abc import Callable, Iterable
from functools import lru_cache

from odradek.host.disk import Buffer
from odradek.host.open_files import OpenFiles


class SimulatedInode:
    """A file: what the disk surely has, what readers see, and the operations between the two."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self.modified_ms = now_ms()
        self.synced = b""
        self.content = bytearray()
        self.pending: list[tuple[int, bytes | None]] = []  # (position, data), or (size, None) for a truncation

    def write(self, data: bytes, position: int) -> None:
        _write(self.content, data, position)
        self.pending.append((position, data))
        self.modified_ms = self._now_ms()

    def truncate(self, size_bytes: int) -> None:
        _truncate(self.content, size_bytes)
        self.pending.append((size_bytes, None))

    def sync(self) -> None:
        if self.pending:
            synced = bytearray(self.synced)
            for position, data in self.pending:
                if data is None:
                    _truncate(synced, position)
                else:
                    _write(synced, data, position)
            self.synced = bytes(synced)
            self.pending.clear()

    def fail_sync(self) -> None:
        """As Linux does after a failed fsync: readers still see the writes, but no later sync will write them."""
        self.pending.clear()

    def crash(self, chance: random.Random) -> None:
        content = bytearray(self.synced)
        reached = chance.randint(0, len(self.pending))
        for index, (position, data) in enumerate(self.pending[:reached]):
            if data is None:
                _truncate(content, position)
                continue
            kept = len(data)
            if index == reached - 1:
                kept = chance.randint(0, kept)  # the power went while this one was written
            elif chance.random() < 0.1:
                kept = 0  # written back later than those after it
                if chance.random() < 0.5 and position + len(data) > len(content):
                    _truncate(content, position + len(data))  # the size arrived, the data did not
            if kept:
                _write(content, data[:kept], position)
        self.content = content
        self.synced = bytes(content)
        self.pending.clear()


def _write(content: bytearray, data: bytes, position: int) -> None:
    if position > len(content):
        content.extend(bytes(position - len(content)))
    content[position : position + len(data)] = data


def _truncate(content: bytearray, size_bytes: int) -> None:
    if size_bytes < len(content):
        del content[size_bytes:]
    else:
        content.extend(bytes(size_bytes - len(content)))


class SimulatedDirectory:
    """Names change in order; a crash keeps some first part of the changes since the last sync."""

    def __init__(self) -> None:
        self.durable: dict[str, SimulatedInode | SimulatedDirectory] = {}
        self.entries: dict[str, SimulatedInode | SimulatedDirectory] = {}
        self.pending: list[dict[str, SimulatedInode | SimulatedDirectory | None]] = []

    def change(self, changes: dict[str, "SimulatedInode | SimulatedDirectory | None"]) -> None:
        _apply(self.entries, changes)
        self.pending.append(changes)

    def sync(self) -> None:
        for changes in self.pending:
            _apply(self.durable, changes)
        self.pending.clear()

    def fail_sync(self) -> None:
        self.pending.clear()

    def crash(self, chance: random.Random) -> None:
        for changes in self.pending[: chance.randint(0, len(self.pending))]:
            _apply(self.durable, changes)
        self.pending.clear()
        self.entries = dict(self.durable)
        for name in sorted(self.entries):
            self.entries[name].crash(chance)


def _apply(
    entries: dict[str, SimulatedInode | SimulatedDirectory],
    changes: dict[str, SimulatedInode | SimulatedDirectory | None],
) -> None:
    for name, node in changes.items():
        if node is None:
            entries.pop(name, None)
        else:
            entries[name] = node


class SimulatedFile:
    def __init__(self, disk: "SimulatedDisk", inode: SimulatedInode, path: str) -> None:
        self._disk = disk
        self._inode = inode
        self._path = path
        self._life = disk.life

    def _living(self) -> SimulatedInode:
        if self._life != self._disk.life:
            raise OSError(errno.EBADF, "the process that opened this file is gone")
        return self._inode

    def write_at(self, data: Buffer, position: int) -> None:
        inode = self._living()
        self._disk.check(self._path)
        end = position + len(data)
        room = self._disk.room_bytes() - max(0, end - len(inode.content))
        if room < 0:
            inode.write(bytes(data[: max(0, len(data) + room)]), position)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        inode.write(bytes(data), position)

    def read_at(self, size_bytes: int, position: int) -> bytes:
        return bytes(self._living().content[position : position + size_bytes])

    def is_in_memory(self, size_bytes: int, position: int) -> bool:
        return not self._disk.has_forgotten

    def bring_into_memory(self, size_bytes: int, position: int) -> None:
        self._living()
        self._disk.brought_into_memory.append((self._path, position, size_bytes))

    def truncate(self, size_bytes: int) -> None:
        self._living().truncate(size_bytes)

    def size(self) -> int:
        return len(self._living().content)

    def sync(self) -> None:
        self._disk.sync_node(self._living(), self._path)

    def close(self) -> None:
        self._life = -1

    @property
    def descriptor(self) -> int:
        raise OSError(errno.EBADF, "a simulated file has no descriptor")


class SimulatedLock:
    def __init__(self, release: Callable[[], None]) -> None:
        self._release = release

    def release(self) -> None:
        self._release()


class SurvivingConnection(sqlite3.Connection):
    """The database outlives the processes that open it, so closing it does nothing."""

    def close(self) -> None:
        if self.in_transaction:
            self.rollback()


class SimulatedDisk:
    def __init__(self, now_ms: Callable[[], int] = lambda: 0) -> None:
        self._now_ms = now_ms
        self.open_files = OpenFiles(10)  # few, so that files are given back all the time
        self.life = 0
        self.capacity_bytes: int | None = None
        self.sync_error: BaseException | None = None
        self.operations_left: int | None = None  # then `interruption` comes, at every further operation
        self.interruption: BaseException | None = None
        self.has_forgotten = False  # nothing of any file is in memory
        self.brought_into_memory: list[tuple[str, int, int]] = []  # path, position, bytes
        self.broken: set[str] = set()  # paths where nothing can be written, created or synced any more
        self._root = SimulatedDirectory()
        self._locks: set[str] = set()
        self._databases: dict[str, SurvivingConnection] = {}

    def crash(self, chance: random.Random) -> None:
        """Power is lost: open files and locks are gone, and a seeded part of what was not synced."""
        self.operations_left = None
        self.life += 1
        self._locks.clear()
        self._root.crash(chance)
        for connection in self._databases.values():
            if connection.in_transaction:
                connection.rollback()

    def kill(self) -> None:
        """Only the process dies: the operating system keeps what it wrote."""
        self.life += 1
        self._locks.clear()
        for connection in self._databases.values():
            if connection.in_transaction:
                connection.rollback()

    def sync_node(self, node: SimulatedInode | SimulatedDirectory, path: str) -> None:
        try:
            self._before_sync(path)
        except OSError:
            node.fail_sync()
            raise
        node.sync()

    def _before_sync(self, path: str) -> None:
        self.check(path)
        if self.sync_error is not None:
            raise self.sync_error

    def check(self, path: str) -> None:
        """Before each operation that changes something. OSError when this part of the disk is broken."""
        if self.operations_left is not None and self.interruption is not None:
            self.operations_left -= 1
            if self.operations_left < 0:
                raise self.interruption
        if any(path == broken or path.startswith(f"{broken}/") for broken in self.broken):
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)

    def room_bytes(self) -> int:
        return 1 << 40 if self.capacity_bytes is None else self.capacity_bytes - self.used_bytes()

    def used_bytes(self) -> int:
        return _used_bytes(self._root)

    def open(self, path: str, *, create: bool = False) -> SimulatedFile:
        directory, name = self._parent(path)
        node = directory.entries.get(name)
        if node is None:
            self.check(path)
            if not create:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
            node = SimulatedInode(self._now_ms)
            directory.change({name: node})
        if isinstance(node, SimulatedDirectory):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        return SimulatedFile(self, node, path)

    def absolute_path(self, path: str) -> str:
        return "/" + "/".join(_names(path))

    def exists(self, path: str) -> bool:
        try:
            self._node(path)
        except FileNotFoundError:
            return False
        return True

    def make_private(self, paths: Iterable[str]) -> None:
        """Files have no rights."""

    def is_directory(self, path: str) -> bool:
        return self.exists(path) and isinstance(self._node(path), SimulatedDirectory)

    def list_directory(self, path: str) -> list[str]:
        self.check(path)
        return sorted(self._directory(path).entries)

    def make_directories(self, path: str) -> None:
        directory = self._root
        for name in _names(path):
            child = directory.entries.get(name)
            if child is None:
                self.check(path)
                child = SimulatedDirectory()
                directory.change({name: child})
            if not isinstance(child, SimulatedDirectory):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
            directory = child

    def rename(self, source: str, target: str) -> None:
        node = self._node(source)
        source_directory, source_name = self._parent(source)
        target_directory, target_name = self._parent(target)
        if source_directory is target_directory:
            source_directory.change({source_name: None, target_name: node})
        else:
            target_directory.change({target_name: node})
            source_directory.change({source_name: None})

    def remove(self, path: str) -> None:
        self._node(path)
        directory, name = self._parent(path)
        directory.change({name: None})

    def remove_tree(self, path: str) -> None:
        self.remove(path)

    def file_size(self, path: str) -> int:
        return self.open(path).size()

    def modified_ms(self, path: str) -> int:
        node = self._node(path)
        assert isinstance(node, SimulatedInode)
        return node.modified_ms

    def read_file(self, path: str) -> bytes:
        file = self.open(path)
        return file.read_at(file.size(), 0)

    def replace_file(self, path: str, data: bytes) -> None:
        if self.room_bytes() < len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        self._before_sync(path)
        inode = SimulatedInode(self._now_ms)
        inode.write(data, 0)
        inode.sync()
        directory, name = self._parent(path)
        directory.change({name: inode})
        directory.sync()

    def sync_directory(self, path: str) -> None:
        self.sync_node(self._directory(path), path)

    def space(self, path: str) -> tuple[int, int]:
        self._node(path)
        return self.capacity_bytes or 1 << 40, self.room_bytes()

    def lock(self, path: str) -> SimulatedLock | None:
        self.open(path, create=True)
        if path in self._locks:
            return None
        self._locks.add(path)
        return SimulatedLock(lambda: self._locks.discard(path))

    def open_database(self, path: str) -> sqlite3.Connection:
        connection = self._databases.get(path)
        if connection is None:
            connection = sqlite3.connect(
                ":memory:", isolation_level=None, check_same_thread=False, factory=SurvivingConnection
            )
            self._databases[path] = connection
        return connection

    def dispose(self) -> None:
        """Gives back what lies outside this object: the databases."""
        for connection in self._databases.values():
            sqlite3.Connection.close(connection)
        self._databases.clear()

    def _node(self, path: str) -> SimulatedInode | SimulatedDirectory:
        node: SimulatedInode | SimulatedDirectory = self._root
        for name in _names(path):
            child = node.entries.get(name) if isinstance(node, SimulatedDirectory) else None
            if child is None:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
            node = child
        return node

    def _directory(self, path: str) -> SimulatedDirectory:
        node = self._node(path)
        if not isinstance(node, SimulatedDirectory):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
        return node

    def _parent(self, path: str) -> tuple[SimulatedDirectory, str]:
        parent, _, name = path.rpartition("/")
        return self._directory(parent), name


@lru_cache(1 << 12)
def _names(path: str) -> tuple[str, ...]:
    return tuple(name for name in path.split("/") if name and name != ".")


def _used_bytes(directory: SimulatedDirectory) -> int:
    return sum(
        _used_bytes(node) if isinstance(node, SimulatedDirectory) else len(node.content)
        for node in directory.entries.values()
    )
