"""The disk as the broker sees it: files written and read at positions, and the few directory operations a log needs.
Nothing here is durable before `sync`, `sync_directory` or `replace_file` has returned."""

import errno
import sqlite3
from collections.abc import Iterable
from typing import Protocol, TypeAlias

from odradek.host.open_files import OpenFiles

Buffer: TypeAlias = bytes | bytearray | memoryview

_REFUSALS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EINTR, errno.EAGAIN})


def is_refusal(problem: OSError) -> bool:
    """Whether the operation failed for lack of disk space, descriptors or memory: the disk is not broken."""
    return problem.errno in _REFUSALS


class File(Protocol):
    """An open file. It is closed with its last reference, so that a reader (a slice that is being sent) can finish
    reading a removed file; `close` is for an owner that knows that there is no other reader."""

    def write_at(self, data: Buffer, position: int) -> None:
        """All of it, or OSError (then any part of it may have been written)."""

    def read_at(self, size_bytes: int, position: int) -> bytes:
        """Short only at the end of the file."""

    def is_in_memory(self, size_bytes: int, position: int) -> bool:
        """Whether these bytes can be sent without waiting for the disk. Does not block; probes some of them."""

    def bring_into_memory(self, size_bytes: int, position: int) -> None:
        """Read these bytes into the page cache, so that sending them does not wait for the disk. Blocks."""

    def truncate(self, size_bytes: int) -> None: ...

    def size(self) -> int: ...

    def sync(self) -> None:
        """Blocks until the content is durable: call it on a worker."""

    def close(self) -> None: ...

    @property
    def descriptor(self) -> int:
        """For sendfile."""


class Lock(Protocol):
    def release(self) -> None: ...


class Disk(Protocol):
    @property
    def open_files(self) -> OpenFiles:
        """The registry of files that are kept open, which bounds their number."""

    def open(self, path: str, *, create: bool = False) -> File: ...

    def absolute_path(self, path: str) -> str:
        """The path for other processes, which may have another working directory."""

    def exists(self, path: str) -> bool: ...

    def is_directory(self, path: str) -> bool: ...

    def list_directory(self, path: str) -> list[str]: ...

    def make_directories(self, path: str) -> None: ...

    def rename(self, source: str, target: str) -> None:
        """Atomic, replaces the target, and is durable only once the directory is synced."""

    def remove(self, path: str) -> None: ...

    def remove_tree(self, path: str) -> None: ...

    def file_size(self, path: str) -> int: ...

    def modified_ms(self, path: str) -> int:
        """The time of the last write, by the wall clock."""

    def read_file(self, path: str) -> bytes: ...

    def replace_file(self, path: str, data: bytes) -> None:
        """Durable when it returns; readers see the old or the new file, never a part. Blocks: call it on a worker."""

    def sync_directory(self, path: str) -> None: ...

    def make_private(self, paths: Iterable[str]) -> None:
        """Takes the rights of group and others on those of these files and directories that are this user's and that
        every user may use, and logs how many there were. What only a group may use is the choice of an operator."""

    def space(self, path: str) -> tuple[int, int]:
        """Total and usable bytes of the file system that holds this path."""

    def lock(self, path: str) -> Lock | None:
        """An exclusive lock, or None while another process holds it."""

    def open_database(self, path: str) -> sqlite3.Connection:
        """A connection in autocommit mode, durable at each commit, usable from worker threads one at a time."""
