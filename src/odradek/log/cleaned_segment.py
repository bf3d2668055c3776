"""The segment that compaction writes, and the three names of its files: `.cleaned` while it is written, `.swap` once
it is complete and synced, and its own name when it replaces the old segments. After a crash, `.cleaned` files are
removed, and a `.log.swap` file replaces the old segments (`complete_swaps`)."""

import re
from collections.abc import Iterable
from contextlib import suppress
from typing import NamedTuple

from odradek.host.disk import Disk, File
from odradek.log.batch_scan import scan_headers
from odradek.log.offset_index import OffsetIndex
from odradek.log.stored_segment import (
    INDEX_SUFFIXES,
    LOG_SUFFIX,
    NAME_DIGITS,
    OFFSET_INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    file_path,
)
from odradek.log.time_index import TimeIndex
from odradek.log.transaction_index import (
    TRANSACTION_CHECKSUM_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    AbortedTransaction,
    encode_checksum,
    encode_transaction_index,
)
from odradek.protocol.sentinels import NO_TIMESTAMP
from odradek.protocol.varints import Bytes

CLEANED_SUFFIX = ".cleaned"
SWAP_SUFFIX = ".swap"

# The log file is renamed last: when it has a name, the other files have theirs.
_SUFFIXES = (*INDEX_SUFFIXES, LOG_SUFFIX)
_WRITE_BYTES = 1 << 20
_SWAPPED_LOG = re.compile(rf"(\d{{{NAME_DIGITS}}})\.log\.swap")
_SEGMENT_FILE = re.compile(rf"(\d{{{NAME_DIGITS}}})(\.log|\.index|\.timeindex|\.txnindex|\.txnchecksum)")


class CleanedSegment(NamedTuple):
    """A segment under its `.swap` names, which will replace others."""

    base_offset: int
    size_bytes: int
    max_timestamp: int
    has_aborted_transactions: bool


class CleanedSegmentWriter:
    """Call `append` for the batches that stay, then `stage`."""

    def __init__(self, disk: Disk, directory: str, base_offset: int, index_interval_bytes: int) -> None:
        self._disk = disk
        self._directory = directory
        self._base_offset = base_offset
        self._index_interval_bytes = index_interval_bytes
        self._file = self._create(LOG_SUFFIX)
        self._offset_index = OffsetIndex(disk, self._path(OFFSET_INDEX_SUFFIX))
        self._time_index = TimeIndex(disk, self._path(TIME_INDEX_SUFFIX))
        self._offset_index.create()
        self._time_index.create()
        self._parts: list[Bytes] = []
        self._buffered_bytes = 0
        self._written_bytes = 0
        self._bytes_since_index_entry = 0
        self._max_timestamp = NO_TIMESTAMP
        self._offset_of_max_timestamp = base_offset

    def append(self, batch: Bytes, last_offset: int) -> None:
        size_bytes = len(batch)
        max_timestamp = int.from_bytes(batch[35:43], "big", signed=True)
        if max_timestamp > self._max_timestamp:
            self._max_timestamp = max_timestamp
            self._offset_of_max_timestamp = last_offset
        if self._bytes_since_index_entry > self._index_interval_bytes:
            self._offset_index.append(last_offset - self._base_offset, self._written_bytes + self._buffered_bytes)
            self._append_time()
            self._bytes_since_index_entry = 0
        self._bytes_since_index_entry += size_bytes
        self._parts.append(batch)
        self._buffered_bytes += size_bytes
        if self._buffered_bytes >= _WRITE_BYTES:
            self._write()

    def stage(self, aborted: Iterable[AbortedTransaction]) -> CleanedSegment:
        """Syncs the files and gives them their `.swap` names, which survive a crash."""
        self._write()
        self._append_time()
        self._offset_index.write()
        self._time_index.write()
        data = encode_transaction_index(aborted)
        if data:
            self._create(TRANSACTION_INDEX_SUFFIX).write_at(data, 0)
            self._create(TRANSACTION_CHECKSUM_SUFFIX).write_at(encode_checksum(data), 0)
        for suffix in _SUFFIXES:
            with suppress(FileNotFoundError):
                self._disk.open(self._path(suffix)).sync()
        for suffix in _SUFFIXES:
            path = file_path(self._directory, self._base_offset, suffix)
            with suppress(FileNotFoundError):
                self._disk.rename(path + CLEANED_SUFFIX, path + SWAP_SUFFIX)
        self._disk.sync_directory(self._directory)
        return CleanedSegment(self._base_offset, self._written_bytes, self._max_timestamp, bool(data))

    def _write(self) -> None:
        if self._parts:
            self._file.write_at(b"".join(self._parts), self._written_bytes)
            self._written_bytes += self._buffered_bytes
            self._parts.clear()
            self._buffered_bytes = 0

    def _append_time(self) -> None:
        self._time_index.append_if_larger(self._max_timestamp, self._offset_of_max_timestamp - self._base_offset)

    def _path(self, suffix: str) -> str:
        return file_path(self._directory, self._base_offset, suffix) + CLEANED_SUFFIX

    def _create(self, suffix: str) -> File:
        file = self._disk.open(self._path(suffix), create=True)
        file.truncate(0)
        return file


def take_names(disk: Disk, directory: str, base_offset: int) -> None:
    """Renames `.swap` files to the names of a segment; the files that had those names were renamed or removed."""
    for suffix in _SUFFIXES:
        path = file_path(directory, base_offset, suffix)
        with suppress(FileNotFoundError):
            disk.rename(path + SWAP_SUFFIX, path)


def has_compaction_files(names: Iterable[str]) -> bool:
    """Whether the directory of a log, which has these names, has files of a compaction that did not finish."""
    return any(name.endswith((CLEANED_SUFFIX, SWAP_SUFFIX)) for name in names)


def discard_unused(disk: Disk, directory: str) -> None:
    """Removes the files of a compaction that did not finish. Blocks."""
    for name in disk.list_directory(directory):
        if name.endswith((CLEANED_SUFFIX, SWAP_SUFFIX)):
            with suppress(FileNotFoundError):
                disk.remove(f"{directory}/{name}")


def complete_swaps(disk: Disk, directory: str) -> int:
    """When a log is opened: completes the replacements that a crash interrupted; returns how many. Blocks."""
    names = disk.list_directory(directory)
    swapped = sorted(int(match[1]) for match in map(_SWAPPED_LOG.fullmatch, names) if match)
    for base_offset in swapped:
        next_offset = _next_offset(disk, directory, base_offset)
        for match in filter(None, map(_SEGMENT_FILE.fullmatch, names)):
            is_replaced = int(match[1]) == base_offset and match[2] != LOG_SUFFIX  # which the rename replaces
            if is_replaced or base_offset < int(match[1]) < next_offset:
                disk.remove(f"{directory}/{match[0]}")
        take_names(disk, directory, base_offset)
    discard_unused(disk, directory)
    if swapped:
        disk.sync_directory(directory)
    return len(swapped)


def _next_offset(disk: Disk, directory: str, base_offset: int) -> int:
    """The end offset of the segment: it replaces the segments that begin before it."""
    file = disk.open(file_path(directory, base_offset, LOG_SUFFIX) + SWAP_SUFFIX)
    next_offset = base_offset
    for _, header in scan_headers(file, 0, file.size()):
        next_offset = header.last_offset + 1
    return next_offset
