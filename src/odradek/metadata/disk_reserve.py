"""Reserved disk space for the metadata store: on a full disk, the deletion that frees space must itself be written.

Blocks: runs on a worker.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from odradek.host.disk import Disk

SIZE_BYTES = 256 << 10


class DiskReserve:
    __slots__ = ("_disk", "_is_held", "_path")

    def __init__(self, disk: Disk, path: str) -> None:
        self._disk = disk
        self._path = path
        self._is_held = False

    def hold(self) -> None:
        """Reserve the space if the disk has it."""
        if self._is_held:
            return
        try:
            file = self._disk.open(self._path, create=True)
            if file.size() < SIZE_BYTES:
                file.write_at(bytes(SIZE_BYTES), 0)
            self._is_held = True
        except OSError:
            with suppress(OSError):
                self._disk.remove(self._path)

    def release(self) -> bool:
        """Give the space back; False when none is held."""
        if not self._is_held:
            return False
        self._is_held = False
        with suppress(OSError):
            self._disk.remove(self._path)
        return True
