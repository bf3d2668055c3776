"""The disk of the operating system: positional reads and writes, and the durable fsync of Linux and macOS."""

import contextlib
import errno
import fcntl
import os
import resource
import shutil
import sqlite3
import stat
import time
from collections.abc import Callable, Iterable, Iterator

from odradek.host.disk import Buffer, Lock
from odradek.host.logs import get_logger
from odradek.host.open_files import OpenFiles

logger = get_logger(__name__)

_FULL_SYNC: int | None = getattr(fcntl, "F_FULLFSYNC", None)  # macOS: fsync alone leaves the data in the drive's cache
_sync_data = getattr(os, "fdatasync", os.fsync)  # fdatasync writes the size too, all that an append changes
_NO_WAIT: int | None = getattr(os, "RWF_NOWAIT", None)  # Linux
_PROBED_BYTES = 1 << 20  # probed at its two ends: the page cache loads and evicts ranges
_ANY_BYTE = [bytearray(1)]  # a buffer that is never read
_OPEN_FLAGS = os.O_RDWR | os.O_CLOEXEC
# Only the user of the broker reads what it writes: records, credentials, audit lines.
_FILE_MODE = 0o600
_DIRECTORY_MODE = 0o700
# A name that is created leads nowhere else: another user may have put a symbolic link there.
_CREATE_FLAGS = _OPEN_FLAGS | os.O_CREAT | os.O_NOFOLLOW
_READ_BYTES = 64 << 10

# Files of SQLite that several connections may open at once.
_CONVERSION_SECONDS = 30.0
_RETRY_SECONDS = 0.01
_PRIMARY_ERROR_CODE = 0xFF  # the bits above it say which kind of the error

# Segments may use a quarter of the descriptors of the process, connections the rest.
MOST_OPEN_FILES = 8192
FEWEST_OPEN_FILES = 64


def _is_in_memory(descriptor: int, position: int) -> bool | None:
    """Whether the byte at this position can be read without waiting; None where the system does not support the
    call. Errors are left to the read itself."""
    if _NO_WAIT is None:
        return None
    try:
        os.preadv(descriptor, _ANY_BYTE, position, _NO_WAIT)
    except OSError as problem:
        return None if problem.errno == errno.EOPNOTSUPP else False
    return True


def _pieces(size_bytes: int, position: int) -> Iterator[tuple[int, int]]:
    """Size and position of the ranges that are probed at their two ends."""
    for start in range(position, position + size_bytes, _PROBED_BYTES):
        yield min(_PROBED_BYTES, position + size_bytes - start), start


def _sync_descriptor(descriptor: int, sync: Callable[[int], None]) -> None:
    if _FULL_SYNC is not None:
        try:
            fcntl.fcntl(descriptor, _FULL_SYNC)
        except OSError as error:
            if error.errno not in (errno.ENOTSUP, errno.EINVAL):  # network file systems support only fsync
                raise
        else:
            return
    sync(descriptor)


def _create(path: str, flags: int = 0) -> int:
    try:
        return os.open(path, _CREATE_FLAGS | flags, _FILE_MODE)
    except OSError as problem:
        if not os.path.islink(path):
            raise
        text = f"symbolic links are not followed: remove it, or name {os.path.realpath(path)} instead"
        raise OSError(problem.errno, text, path) from problem


def _make_private(path: str) -> bool:
    found = os.lstat(path)
    is_kept = found.st_mode & stat.S_ISVTX or not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode))
    if is_kept or not found.st_mode & stat.S_IRWXO or found.st_uid != os.geteuid():
        return False
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        os.fchmod(descriptor, stat.S_IMODE(found.st_mode) & ~(stat.S_IRWXG | stat.S_IRWXO))
    finally:
        os.close(descriptor)
    return True


class RealFile:
    __slots__ = ("_descriptor",)

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def write_at(self, data: Buffer, position: int) -> None:
        written = os.pwrite(self._descriptor, data, position)
        if written != len(data):
            self._write_rest(data, position, written)

    def _write_rest(self, data: Buffer, position: int, written: int) -> None:
        view = memoryview(data)
        while written < len(view):
            count = os.pwrite(self._descriptor, view[written:], position + written)
            if count == 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            written += count

    def read_at(self, size_bytes: int, position: int) -> bytes:
        data = os.pread(self._descriptor, size_bytes, position)
        if len(data) == size_bytes or not data:
            return data
        parts = [data]
        remaining = size_bytes - len(data)
        while remaining > 0:
            position += len(data)
            data = os.pread(self._descriptor, remaining, position)
            if not data:
                break
            parts.append(data)
            remaining -= len(data)
        return b"".join(parts)

    def is_in_memory(self, size_bytes: int, position: int) -> bool:
        descriptor = self._descriptor
        # The end first: the beginning of a sequential read was read ahead.
        return not any(
            _is_in_memory(descriptor, start + piece_bytes - 1) is False or _is_in_memory(descriptor, start) is False
            for piece_bytes, start in _pieces(size_bytes, position)
        )

    def bring_into_memory(self, size_bytes: int, position: int) -> None:
        descriptor = self._descriptor
        for piece_bytes, start in _pieces(size_bytes, position):
            if not (_is_in_memory(descriptor, start + piece_bytes - 1) and _is_in_memory(descriptor, start)):
                os.pread(descriptor, piece_bytes, start)

    def truncate(self, size_bytes: int) -> None:
        os.ftruncate(self._descriptor, size_bytes)

    def size(self) -> int:
        return os.fstat(self._descriptor).st_size

    def sync(self) -> None:
        _sync_descriptor(self._descriptor, _sync_data)

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __del__(self) -> None:
        # The reference count says when there is no reader left (see File).
        if self._descriptor >= 0:
            self.close()

    @property
    def descriptor(self) -> int:
        if self._descriptor < 0:
            raise ValueError("the file is closed")
        return self._descriptor


class RealLock:
    __slots__ = ("_descriptor",)

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def release(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


class RealDisk:
    __slots__ = ("open_files",)

    def __init__(self) -> None:
        descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        share = MOST_OPEN_FILES if descriptors == resource.RLIM_INFINITY else descriptors // 4
        self.open_files = OpenFiles(max(FEWEST_OPEN_FILES, min(share, MOST_OPEN_FILES)))

    def open(self, path: str, *, create: bool = False) -> RealFile:
        return RealFile(_create(path) if create else os.open(path, _OPEN_FLAGS))

    def absolute_path(self, path: str) -> str:
        return os.path.abspath(path)

    def exists(self, path: str) -> bool:
        return os.path.lexists(path)

    def is_directory(self, path: str) -> bool:
        return os.path.isdir(path)

    def list_directory(self, path: str) -> list[str]:
        return os.listdir(path)

    def make_directories(self, path: str) -> None:
        missing = []
        while path and not os.path.isdir(path):
            missing.append(path)
            path = os.path.dirname(path.rstrip("/"))
        for each in reversed(missing):
            with contextlib.suppress(FileExistsError):
                os.mkdir(each, _DIRECTORY_MODE)
        if missing and not os.path.isdir(missing[0]):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), missing[0])

    def rename(self, source: str, target: str) -> None:
        os.replace(source, target)

    def remove(self, path: str) -> None:
        os.unlink(path)

    def remove_tree(self, path: str) -> None:
        shutil.rmtree(path)

    def file_size(self, path: str) -> int:
        return os.stat(path).st_size

    def modified_ms(self, path: str) -> int:
        return os.stat(path).st_mtime_ns // 1_000_000

    def read_file(self, path: str) -> bytes:
        """Without Python's file objects: a start reads five small files of each log."""
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            parts = []
            while data := os.read(descriptor, _READ_BYTES):
                parts.append(data)
            return b"".join(parts)
        finally:
            os.close(descriptor)

    def replace_file(self, path: str, data: bytes) -> None:
        temporary = path + ".tmp"
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)  # left by a crash, or a link
        descriptor = _create(temporary, os.O_EXCL)
        try:
            file = RealFile(descriptor)
            file.write_at(data, 0)
            file.sync()
            file.close()
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
        self.sync_directory(os.path.dirname(path) or ".")

    def sync_directory(self, path: str) -> None:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            _sync_descriptor(descriptor, os.fsync)
        finally:
            os.close(descriptor)

    def make_private(self, paths: Iterable[str]) -> None:
        changed = []
        for path in paths:
            with contextlib.suppress(OSError):  # removed meanwhile, or a file system that does not allow it
                if _make_private(path):
                    changed.append(path)
        if changed:
            logger.info("other users lose access to files of this broker", first=changed[0], count=len(changed))

    def space(self, path: str) -> tuple[int, int]:
        status = os.statvfs(path)
        return status.f_frsize * status.f_blocks, status.f_frsize * status.f_bavail

    def lock(self, path: str) -> Lock | None:
        descriptor = _create(path)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        return RealLock(descriptor)

    def open_database(self, path: str) -> sqlite3.Connection:
        # It holds credentials of users. SQLite gives its other files the rights of this one.
        os.close(_create(path))
        if os.stat(path).st_mode & 0o077 and os.stat(path).st_uid == os.geteuid():
            os.chmod(path, 0o600)
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        _use_write_ahead_log(connection)
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA fullfsync=1")  # macOS, as for files; nothing elsewhere
        connection.execute("PRAGMA checkpoint_fullfsync=1")
        return connection


def _use_write_ahead_log(connection: sqlite3.Connection) -> None:
    """Set the journal mode of a file, and retry while another connection sets it.

    The first connection to a new file converts it. SQLite answers the others at once that the file is locked: its
    own wait for locks does not apply to this statement.
    """
    deadline = time.monotonic() + _CONVERSION_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            is_busy = error.sqlite_errorcode & _PRIMARY_ERROR_CODE == sqlite3.SQLITE_BUSY
            if not is_busy or time.monotonic() > deadline:
                raise
            time.sleep(_RETRY_SECONDS)
        else:
            return
