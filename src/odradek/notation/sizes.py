"""Sizes as texts."""

from __future__ import annotations

UNITS = ("B", "KB", "MB", "GB", "TB")


def size_text(size_bytes: float) -> str:
    """12 B, 3.4 KB, 1.2 GB: powers of 1000."""
    for unit in UNITS[:-1]:
        if abs(size_bytes) < 999.95:
            return f"{size_bytes:.0f} B" if unit == UNITS[0] else f"{size_bytes:.1f} {unit}"
        size_bytes /= 1000
    return f"{size_bytes:.1f} {UNITS[-1]}"
