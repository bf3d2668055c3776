"""The lag of a whole group. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from odradek.admin.partition_offsets import Key


def unread_records(committed: Mapping[Key, int], ends: Mapping[Key, int], existing: Collection[Key]) -> int | None:
    """Records after the committed offsets of a group, in the partitions that exist. None if the end of one of them is
    not known, as while it has no leader: the sum of the others would fall when a broker dies."""
    known = [(offset, ends.get(key)) for key, offset in committed.items() if key in existing]
    lags = [max(end - offset, 0) for offset, end in known if end is not None]
    return sum(lags) if len(lags) == len(known) else None
