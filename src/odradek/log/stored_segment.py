"""A segment on the disk: the names of its files, the descriptor of the file of batches, and their removal."""

import errno
from contextlib import suppress

from odradek.host.disk import Disk, File
from odradek.log.offset_index import OffsetIndex
from odradek.log.time_index import TimeIndex
from odradek.log.transaction_index import (
    TRANSACTION_CHECKSUM_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    TransactionIndex,
    checksum_path,
)

LOG_SUFFIX = ".log"
OFFSET_INDEX_SUFFIX = ".index"
TIME_INDEX_SUFFIX = ".timeindex"
INDEX_SUFFIXES = (OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX, TRANSACTION_CHECKSUM_SUFFIX)
DELETED_SUFFIX = ".deleted"

NAME_DIGITS = 20


def file_path(directory: str, base_offset: int, suffix: str) -> str:
    return f"{directory}/{base_offset:0{NAME_DIGITS}d}{suffix}"


class StoredSegment:
    """A descriptor is opened for the first read or write, and given back when too many are open (`OpenFiles`). Slices
    that are being sent keep theirs."""

    __slots__ = (
        "_asked_size_bytes",
        "_file",
        "_is_used",
        "base_offset",
        "directory",
        "disk",
        "is_removed",
        "offset_index",
        "size_bytes",
        "time_index",
        "transaction_index",
    )

    def __init__(self, disk: Disk, directory: str, base_offset: int) -> None:
        self.disk = disk
        self._file: File | None = None
        self._is_used = False
        self._asked_size_bytes = 0
        self.is_removed = False
        self.directory = directory
        self.base_offset = base_offset
        self.size_bytes = 0  # of the file of batches
        self.offset_index = OffsetIndex(disk, self.path(OFFSET_INDEX_SUFFIX))
        self.time_index = TimeIndex(disk, self.path(TIME_INDEX_SUFFIX))
        self.transaction_index = TransactionIndex(disk, self.path(TRANSACTION_INDEX_SUFFIX))

    def path(self, suffix: str) -> str:
        return file_path(self.directory, self.base_offset, suffix)

    @property
    def file(self) -> File:
        self._is_used = True
        file = self._file
        if file is None:
            file = self.disk.open(self.path(LOG_SUFFIX))
            self.check_not_removed()
            self._file = file
            self.disk.open_files.opened(self)
        return file

    def give_back(self, *, even_if_used: bool) -> bool:
        """For `OpenFiles`. An append shows only by the size."""
        is_used = self._is_used or self.size_bytes != self._asked_size_bytes
        self._is_used = False
        self._asked_size_bytes = self.size_bytes
        if is_used and not even_if_used and self._file is not None:
            return False
        self._file = None
        return True

    def check_not_removed(self) -> None:
        """Called after a worker has opened a file by its name: compaction may have given the name to another segment.
        Raises FileNotFoundError then."""
        if self.is_removed:
            raise FileNotFoundError(errno.ENOENT, "the segment was removed", self.path(LOG_SUFFIX))

    def create_file(self) -> None:
        """After a failure there is none: an empty file would end the log at its name."""
        path = self.path(LOG_SUFFIX)
        try:
            self._file = self.disk.open(path, create=True)
            self._file.truncate(0)
            self.disk.open_files.opened(self)
        except OSError:
            self._file = None
            with suppress(OSError):
                self.disk.remove(path)
            raise

    def open_indexes(self) -> list[File]:
        """A full disk may have kept a transaction index from getting its checksum."""
        paths = [self.offset_index.path, self.time_index.path]
        if self.transaction_index.has_file:
            paths.append(self.transaction_index.path)
        files = [self.disk.open(path) for path in paths]
        if self.transaction_index.has_file:
            with suppress(FileNotFoundError):
                files.append(self.disk.open(checksum_path(self.transaction_index.path)))
        return files

    def relocate(self, directory: str) -> None:
        """The directory was renamed. Open files stay open."""
        self.directory = directory
        self.offset_index.path = self.path(OFFSET_INDEX_SUFFIX)
        self.time_index.path = self.path(TIME_INDEX_SUFFIX)
        self.transaction_index.path = self.path(TRANSACTION_INDEX_SUFFIX)

    def rename_for_removal(self) -> list[str]:
        """Quick, unlike removing a file of perhaps a gigabyte. Returns the paths of the files to remove."""
        self.is_removed = True  # before the file is missing for a worker
        self.release()
        renamed = []
        for suffix in (LOG_SUFFIX, *INDEX_SUFFIXES):
            path = self.path(suffix)
            with suppress(FileNotFoundError):  # the index was never written
                self.disk.rename(path, path + DELETED_SUFFIX)
                renamed.append(path + DELETED_SUFFIX)
        return renamed

    def release(self) -> None:
        """Drops the descriptors; slices that are being sent keep theirs."""
        self._file = None
        self.offset_index.release()
        self.time_index.release()
        self.transaction_index.release()
