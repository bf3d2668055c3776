"""A little room on the disk, held for the moment when there is none: the deletion that frees some must be written down
first. All of it blocks: called on a worker."""

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
        """If there is room for it."""
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
        """Whether there was something to give."""
        if not self._is_held:
            return False
        self._is_held = False
        with suppress(OSError):
            self._disk.remove(self._path)
        return True
