"""The log of a started pipeline: the output of its process, in files that are rotated by size; its lines."""

from __future__ import annotations

import os
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LARGEST_BYTES = 10_000_000
KEPT_FILES = 5  # `log`, and log.1 to log.4


class RotatingLog:
    """Redirects standard output and error of this process, and of the processes that it starts later, to the log."""

    def __init__(self, path: Path, largest_bytes: int = LARGEST_BYTES, descriptors: tuple[int, ...] = (1, 2)) -> None:
        self._path, self._largest_bytes, self._descriptors = path, largest_bytes, descriptors

    def turn(self) -> None:
        """Starts a new file if the current one is full or was removed."""
        present = stat_of(self._path)
        if present is None or present.st_size >= self._largest_bytes:
            with suppress(OSError):  # such as a full disk; retried in the next turn
                for number in range(KEPT_FILES - 1, 0, -1):
                    older = numbered(self._path, number - 1)
                    if older.exists():
                        older.replace(numbered(self._path, number))
                self.open()

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


def last_lines(path: Path, count: int, show: Callable[[str], None]) -> int:
    """Shows the last lines, across rotated files; returns the position in the current file."""
    lines: deque[str] = deque(maxlen=count)
    position = 0
    for file in log_files(path):
        data = file.read_bytes()
        whole = data[: data.rfind(b"\n") + 1] if file == path else data
        lines.extend(whole.decode(errors="replace").splitlines())
        position = len(whole) if file == path else 0
    for line in lines:
        show(line)
    return position


def follow_lines(path: Path, position: int, show: Callable[[str], None], pause: Callable[[], bool]) -> None:
    """Shows new lines until `pause` returns true. A new inode means that the file was rotated."""
    before, rest = stat_of(path), b""
    while not pause():
        now = stat_of(path)
        if now is None:
            continue
        if before is None or now.st_ino != before.st_ino:
            before, position, rest = now, 0, b""
        with path.open("rb") as file:
            file.seek(position)
            data = file.read()
        position += len(data)
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            show(line.decode(errors="replace"))


def stat_of(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except FileNotFoundError:
        return None
