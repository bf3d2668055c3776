"""Random damage to one file of a log directory, and the files that are damaged."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Callable
    from pathlib import Path

PAGE_BYTES = 4096
MOST_GARBAGE_BYTES = 200

KINDS = {
    "segment": r".+-\d/\d{20}\.log",
    "offset index": r".+-\d/\d{20}\.index",
    "time index": r".+-\d/\d{20}\.timeindex",
    "transaction index": r".+-\d/\d{20}\.txnindex",
    "its checksum": r".+-\d/\d{20}\.txnchecksum",
    "snapshot": r".+-\d/\d{20}\.snapshot",
    "leader epochs": r".+-\d/leader-epoch-checkpoint",
    "partition.metadata": r".+-\d/partition\.metadata",
    "meta.properties": r"meta\.properties",
    "recovery points": r"recovery-point-offset-checkpoint",
    "log starts": r"log-start-offset-checkpoint",
    "high watermarks": r"replication-offset-checkpoint",
    "clean offsets": r"cleaner-offset-checkpoint",
    "metadata": r"odradek-metadata\.sqlite",
    "clean stop": r"\.kafka_cleanshutdown",
}


def flip(data: bytes, chance: random.Random) -> bytes:
    position = chance.randrange(len(data))
    return data[:position] + bytes([data[position] ^ (1 << chance.randrange(8))]) + data[position + 1 :]


def truncate(data: bytes, chance: random.Random) -> bytes:
    return data[: chance.randrange(len(data))]


def empty(_data: bytes, _chance: random.Random) -> bytes:
    return b""


def append_garbage(data: bytes, chance: random.Random) -> bytes:
    return data + chance.randbytes(chance.randint(1, MOST_GARBAGE_BYTES))


def zero_a_page(data: bytes, chance: random.Random) -> bytes:
    start = chance.randrange(0, len(data), PAGE_BYTES)
    return data[:start] + bytes(len(data[start : start + PAGE_BYTES])) + data[start + PAGE_BYTES :]


CHANGES: tuple[Callable[[bytes, random.Random], bytes], ...] = (flip, truncate, empty, append_garbage, zero_a_page)
DAMAGES = (*(each.__name__ for each in CHANGES), "remove", "replace")


def files_of(directory: Path, kind: str) -> list[Path]:
    """Those with content of a kind, of user topics."""
    pattern = re.compile(KINDS[kind])
    names = {path: path.relative_to(directory).as_posix() for path in directory.rglob("*") if path.is_file()}
    return sorted(
        path
        for path, name in names.items()
        if pattern.fullmatch(name) and not name.startswith("__") and path.stat().st_size
    )


def damage(directory: Path, kind: str, how: str, chance: random.Random) -> Path | None:
    """The damaged file; None if the directory has none of this kind, or the damage changed nothing."""
    files = files_of(directory, kind)
    if not files:
        return None
    path = chance.choice(files)
    before = path.read_bytes()
    if how == "remove":
        path.unlink()
        return path
    if how == "replace":
        others = [each for each in files if each.parent != path.parent]
        after = chance.choice(others).read_bytes() if others else before
    else:
        after = next(each for each in CHANGES if each.__name__ == how)(before, chance)
    path.write_bytes(after)
    return None if after == before else path
