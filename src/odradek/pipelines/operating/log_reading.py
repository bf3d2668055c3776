"""Reads the log of a started pipeline: its last lines, across rotated files, and new lines as they are written."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from odradek.pipelines.operating.rotating_log import log_files

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def last_lines(path: Path, count: int, show: Callable[[str], None]) -> int:
    """Shows the last lines; returns the position in the current file."""
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
    inode = inode_of(path)
    rest = b""
    while not pause():
        now = inode_of(path)
        if now is None:
            continue
        if now != inode:
            inode, position, rest = now, 0, b""
        with path.open("rb") as file:
            file.seek(position)
            data = file.read()
        position += len(data)
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            show(line.decode(errors="replace"))


def inode_of(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return None
