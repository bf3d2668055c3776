"""The log of a started pipeline: the output of the process, in files that are rotated by size."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

LARGEST_BYTES = 10_000_000
KEPT_FILES = 5  # `log`, and log.1 to log.4


class RotatingLog:
    """Redirects standard output and error of this process, and of the processes that it starts later, to the log."""

    def __init__(self, path: Path, largest_bytes: int = LARGEST_BYTES, descriptors: tuple[int, ...] = (1, 2)) -> None:
        self._path = path
        self._largest_bytes = largest_bytes
        self._descriptors = descriptors

    def turn(self) -> None:
        """Starts a new file if the current one is full or was removed."""
        try:
            is_full = self._path.stat().st_size >= self._largest_bytes
        except FileNotFoundError:
            is_full = True
        if is_full:
            with suppress(OSError):  # such as a full disk; retried in the next turn
                self._rotate()
                self.open()

    def _rotate(self) -> None:
        for number in range(KEPT_FILES - 1, 0, -1):
            older = numbered(self._path, number - 1)
            if older.exists():
                older.replace(numbered(self._path, number))

    def open(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        for descriptor in self._descriptors:
            os.dup2(file, descriptor)
        os.close(file)


def numbered(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.{number}") if number else path


def log_files(path: Path) -> list[Path]:
    """The files of a log, from the oldest to the current one."""
    return [each for number in range(KEPT_FILES - 1, -1, -1) if (each := numbered(path, number)).exists()]
