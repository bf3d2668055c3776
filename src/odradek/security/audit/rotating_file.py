"""A file of lines that is renamed when it is full: `audit.log`, `audit.log.1` (the newest of the others) and so on."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from odradek.host.disk import Disk, File


class RotatingFile:
    """Blocks: it is used on a worker, by one job at a time."""

    def __init__(self, disk: Disk, path: str, max_bytes: int, max_files: int) -> None:
        self._disk = disk
        self._path = path
        self._max_bytes = max_bytes
        self._names = [path, *(f"{path}.{number}" for number in range(1, max_files))]
        self._file: File | None = None
        self._size_bytes = 0

    def open(self) -> None:
        """Append to the file if it exists. OSError if it cannot be written to."""
        directory = self._path.rpartition("/")[0]
        if directory:
            self._disk.make_directories(directory)
        self._file = self._disk.open(self._path, create=True)
        self._size_bytes = self._file.size()

    def make_private(self) -> None:
        """Older versions created files that every user may read."""
        self._disk.make_private(self._names)

    def append(self, lines: bytes) -> None:
        """OSError if they could not be written; the next call opens the file again."""
        try:
            if self._file is None:
                self.open()
            if self._size_bytes and self._size_bytes + len(lines) > self._max_bytes:
                self._rotate()
            assert self._file is not None
            self._file.write_at(lines, self._size_bytes)
            self._size_bytes += len(lines)
        except OSError:
            self.close()
            raise

    def close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def _rotate(self) -> None:
        self.close()
        for source, target in reversed(list(itertools.pairwise(self._names))):
            if self._disk.exists(source):
                self._disk.rename(source, target)
        if len(self._names) == 1:
            self._disk.remove(self._path)
        self.open()
