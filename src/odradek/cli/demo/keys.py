"""Single keys of a terminal, without Enter."""

from __future__ import annotations

import os
import select
import sys
from typing import Any, Self


class Keys:
    """Keys that were pressed; none if standard input is no terminal."""

    def __enter__(self) -> Self:
        self._saved: list[Any] | None = None
        if sys.stdin.isatty():
            import termios
            import tty

            self._saved = termios.tcgetattr(sys.stdin)
            tty.setcbreak(sys.stdin)
        return self

    def __exit__(self, *_exception: object) -> None:
        if self._saved is not None:
            import termios

            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, self._saved)

    def pressed(self, timeout_s: float) -> str:
        """Keys within this time; waits for it only where there are no keys."""
        if self._saved is None:
            select.select([], [], [], timeout_s)
            return ""
        readable, _, _ = select.select([sys.stdin], [], [], timeout_s)
        return os.read(sys.stdin.fileno(), 64).decode(errors="ignore") if readable else ""
