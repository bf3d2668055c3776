"""Distributes the lines of a column among its panels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.conventions.dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Size:
    """The lines that a panel needs at least, and those that it can fill. A greedy one can fill any number."""

    least: int
    wanted: int
    is_greedy: bool = False


def allocate(room: int, sizes: Sequence[Size]) -> list[int]:
    """The lines of each panel, 0 for those that do not fit. The first panels have priority; nothing is left over
    unless no panel is shown."""
    lines = [0] * len(sizes)
    for index, size in enumerate(sizes):
        if sum(lines) + size.least <= room:
            lines[index] = size.least
    shown = [index for index, given in enumerate(lines) if given]
    if not shown:
        return lines
    share_out(lines, room, {index: max(sizes[index].wanted, sizes[index].least) for index in shown})
    greedy = [index for index in shown if sizes[index].is_greedy] or shown[-1:]
    share_out(lines, room, dict.fromkeys(greedy, room))
    return lines


def share_out(lines: list[int], room: int, limits: dict[int, int]) -> None:
    """Gives one line to each panel below its limit, in turns, until the room is used."""
    while True:
        growing = [index for index, limit in limits.items() if lines[index] < limit]
        if not growing:
            return
        for index in growing:
            if sum(lines) >= room:
                return
            lines[index] += 1
