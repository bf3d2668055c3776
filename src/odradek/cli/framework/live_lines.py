"""Lines on a terminal that are drawn again in place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Sequence


class LiveLines:
    """Lines are cut to the width of the terminal, and those that exceed its height are left out. The last drawing
    stays on the screen."""

    def __init__(self) -> None:
        from rich.live import Live

        self._live = Live(auto_refresh=False, vertical_overflow="ellipsis")

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._live.stop()

    def draw(self, lines: Sequence[str]) -> None:
        """Lines may contain the colours of `click.style`."""
        from rich.text import Text

        text = Text.from_ansi("\n".join(lines), no_wrap=True, overflow="ellipsis")
        self._live.update(text, refresh=True)
