"""Kafka's transaction index (`.txnindex`): the aborted transactions whose markers lie in a segment, by the offsets of
the markers. A segment without one has no file. Entries of the active segment are in memory, in the format of the file,
until the segment is rolled or closed; those of older segments are only in files.

A damaged index would show aborted records to consumers, and the format has no checksum. So a file of ours beside it
(`.txnchecksum`) has the CRC32C of the index: an index that is missing, or differs from it, is rebuilt when the log is
loaded, and compaction refuses it. An index without a checksum was written by Apache Kafka or by an older version: the
first load compares it with the batches of its segment (see log_loading) and adds one."""

import errno
import struct
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

from odradek.host.disk import Disk, is_refusal
from odradek.protocol.checksum import crc32c
from odradek.protocol.malformed import MalformedMessage

TRANSACTION_INDEX_SUFFIX = ".txnindex"
TRANSACTION_CHECKSUM_SUFFIX = ".txnchecksum"

_VERSION = 0
_CHECKSUM = struct.Struct(">I")
_ENTRY = struct.Struct(">hqqqq")
ENTRY_BYTES = _ENTRY.size


class AbortedTransaction(NamedTuple):
    """`last_offset` is that of the marker; `last_stable_offset` the first offset of the oldest transaction that was
    open when the marker was appended, or the offset after the marker: no later entry is of a transaction that began
    before."""

    first_offset: int  # the first field, by which they are ordered
    producer_id: int
    last_offset: int
    last_stable_offset: int


def decode_transaction_index(data: bytes | bytearray) -> Iterator[AbortedTransaction]:
    """Raises MalformedMessage for data that cannot be an index."""
    if len(data) % ENTRY_BYTES:
        raise MalformedMessage(f"{len(data)} bytes are no transaction index")
    previous = -1
    for version, producer_id, first_offset, last_offset, last_stable_offset in _ENTRY.iter_unpack(data):
        if version != _VERSION or not 0 <= first_offset <= last_offset or last_offset <= previous:
            raise MalformedMessage(
                f"an entry of version {version}, for offsets {first_offset} to {last_offset}, comes after {previous}"
            )
        previous = last_offset
        yield AbortedTransaction(first_offset, producer_id, last_offset, last_stable_offset)


def encode_transaction_index(aborted: Iterable[AbortedTransaction]) -> bytes:
    return b"".join(
        _ENTRY.pack(_VERSION, each.producer_id, each.first_offset, each.last_offset, each.last_stable_offset)
        for each in aborted
    )


def checksum_path(index_path: str) -> str:
    return index_path.removesuffix(TRANSACTION_INDEX_SUFFIX) + TRANSACTION_CHECKSUM_SUFFIX


def encode_checksum(index: bytes | bytearray) -> bytes:
    return _CHECKSUM.pack(crc32c(index))


def read_transaction_index(disk: Disk, path: str) -> bytes:
    """Raises MalformedMessage for an index that is damaged, or missing beside its checksum, and FileNotFoundError when
    there is neither."""
    checksum = None
    with suppress(FileNotFoundError):
        checksum = disk.read_file(checksum_path(path))
    try:
        data = disk.read_file(path)
    except FileNotFoundError:
        if checksum is None:
            raise
        raise MalformedMessage("is missing, and its checksum is there") from None
    for _ in decode_transaction_index(data):
        pass
    if checksum is not None and checksum != encode_checksum(data):
        raise MalformedMessage("does not match its checksum")
    return data


class TransactionIndex:
    """`create` or `load` before writing; `release` frees the memory. `has_file` is set by the owner when a log is
    opened, also if there is only the checksum, and when a compacted segment takes its place."""

    __slots__ = ("_disk", "_entries", "has_file", "path")

    def __init__(self, disk: Disk, path: str) -> None:
        self._disk = disk
        self.path = path
        self.has_file = False
        self._entries: bytearray | None = None

    @property
    def is_empty(self) -> bool:
        return not (self._entries or self.has_file)

    @property
    def is_loaded(self) -> bool:
        """Whether the entries are in memory."""
        return self._entries is not None

    def create(self, aborted: Iterable[AbortedTransaction] = ()) -> None:
        """Begins an index in memory. The file keeps its content until `write`."""
        self._entries = bytearray(encode_transaction_index(aborted))

    def load(self) -> bool:
        """Brings the entries into memory. False when the file is damaged: then it must be rebuilt from the segment."""
        entries = self._read()
        if entries is None:
            return False
        self._entries = entries
        return True

    def is_sound(self, base_offset: int, end_offset: int) -> bool:
        """Whether the file can be the index of a segment with these offsets. Blocks."""
        entries = self._read()
        if entries is None:
            return False
        if not entries:
            return True
        return base_offset <= _entry(entries, 0).last_offset and _entry(entries, -ENTRY_BYTES).last_offset < end_offset

    def _read(self) -> bytearray | None:
        if not self.has_file:
            return bytearray()
        try:
            return bytearray(read_transaction_index(self._disk, self.path))
        except (FileNotFoundError, MalformedMessage):
            return None

    def append(self, aborted: AbortedTransaction) -> None:
        """Appends entries in the order of their markers."""
        assert self._entries is not None, "the index of an old segment is read-only"
        self._entries += encode_transaction_index((aborted,))

    def collect(self, first_offset: int, end_offset: int) -> tuple[list[AbortedTransaction], bool]:
        """The aborted transactions of this segment that overlap the range, and whether no later segment has any. Blocks
        unless the index is in memory. OSError when the file cannot be read."""
        entries = self._entries
        if entries is not None:
            count = len(entries) // ENTRY_BYTES
            return _collect(lambda index: _entry(entries, index * ENTRY_BYTES), count, first_offset, end_offset)
        if not self.has_file:
            return [], False
        file = self._disk.open(self.path)
        count = file.size() // ENTRY_BYTES
        read_at = file.read_at
        try:
            return _collect(
                lambda index: _entry(read_at(ENTRY_BYTES, index * ENTRY_BYTES)), count, first_offset, end_offset
            )
        except struct.error as error:
            raise OSError(errno.EIO, "the transaction index is shorter than it was", self.path) from error

    def copy_before(self, offset: int) -> "TransactionIndex":
        """Another object for the same file, with the transactions in memory that ended before this offset. The file
        keeps the others until `write`. It is not loaded when the file is damaged. Blocks unless this index is in
        memory."""
        copy = TransactionIndex(self._disk, self.path)
        copy.has_file = self.has_file
        entries = self._entries if self._entries is not None else self._read()
        if entries is None:
            return copy
        keep = bisect_left(
            range(len(entries) // ENTRY_BYTES),
            offset,
            key=lambda index: _entry(entries, index * ENTRY_BYTES).last_offset,
        )
        copy._entries = entries[: keep * ENTRY_BYTES]
        return copy

    def write(self) -> None:
        """Writes the file if there are entries, and removes it otherwise."""
        entries = self._entries
        if entries:
            self.has_file = True
            self._write_file(self.path, bytes(entries))
            self._write_file(checksum_path(self.path), encode_checksum(entries))
        elif entries is not None and self.has_file:
            for path in (self.path, checksum_path(self.path)):
                with suppress(FileNotFoundError):
                    self._disk.remove(path)
            self.has_file = False

    def add_checksum(self, aborted: Iterable[AbortedTransaction]) -> bool:
        """Gives a file without a checksum the transactions that its segment has, and a checksum, both durable. Returns
        whether the file had others. An index that is right stays without a checksum on a disk that is full or
        read-only. Blocks."""
        data = encode_transaction_index(aborted)
        has_changed = data != self._disk.read_file(self.path)
        if has_changed:
            self._disk.replace_file(self.path, data)
        try:
            self._disk.replace_file(checksum_path(self.path), encode_checksum(data))
        except OSError as problem:
            if not is_refusal(problem) and problem.errno != errno.EROFS:
                raise
        return has_changed

    def _write_file(self, path: str, data: bytes) -> None:
        file = self._disk.open(path, create=True)
        file.write_at(data, 0)
        file.truncate(len(data))

    def release(self) -> None:
        """Drops the entries in memory, for a segment that takes no more batches."""
        self._entries = None


def _entry(data: bytes | bytearray, position: int = 0) -> AbortedTransaction:
    _, producer_id, first_offset, last_offset, last_stable_offset = _ENTRY.unpack_from(data, position)
    return AbortedTransaction(first_offset, producer_id, last_offset, last_stable_offset)


def _collect(
    read: Callable[[int], AbortedTransaction], count: int, first_offset: int, end_offset: int
) -> tuple[list[AbortedTransaction], bool]:
    found = []
    for index in range(bisect_left(range(count), first_offset, key=lambda index: read(index).last_offset), count):
        aborted = read(index)
        if aborted.first_offset < end_offset:
            found.append(aborted)
        if aborted.last_stable_offset >= end_offset:
            return found, True
    return found, False
