"""Sizes as texts."""

from __future__ import annotations

import re

UNITS = ("B", "KB", "MB", "GB", "TB")
_SIZE = re.compile(r"(\d+(?:\.\d+)?) ?([KMGT]?)((?<=[KMGT])i)?B")


def size_text(size_bytes: float) -> str:
    """12 B, 3.4 KB, 1.2 GB: powers of 1000."""
    for unit in UNITS[:-1]:
        if abs(size_bytes) < 999.95:
            return f"{size_bytes:.0f} B" if unit == UNITS[0] else f"{size_bytes:.1f} {unit}"
        size_bytes /= 1000
    return f"{size_bytes:.1f} {UNITS[-1]}"


def parse_size_bytes(text: str) -> int | None:
    """`10MB` is ten million bytes, `10MiB` has powers of 1024. None for anything else, also for a number alone."""
    match = _SIZE.fullmatch(text)
    if match is None:
        return None
    number, unit, is_binary = match.groups()
    unit_bytes: int = (1024 if is_binary else 1000) ** UNITS.index(unit + "B")
    return round(float(number) * unit_bytes)
