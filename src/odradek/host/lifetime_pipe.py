"""A child process that ends with its parent, even if the parent is killed.

The parent holds the write end of a pipe, the child watches the read end (the option `--stop-with` of our commands).
Unlike PR_SET_PDEATHSIG this works on macOS, and does not depend on the thread that started the child.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class LifetimePipe:
    """The parent's side. It serves one child after another."""

    def __init__(self) -> None:
        self._write_end: int | None = None

    @contextlib.contextmanager
    def opened(self) -> Iterator[int]:
        """The read end, for the child that is started inside the block. Nothing stays open if the block raises."""
        self.close()
        read_end, self._write_end = os.pipe()
        try:
            yield read_end
        except BaseException:
            self.close()
            raise
        finally:
            os.close(read_end)

    def close(self) -> None:
        """A child that is running stops."""
        write_end, self._write_end = self._write_end, None
        if write_end is not None:
            os.close(write_end)


def call_when_parent_ends(read_end: int, function: Callable[[], object]) -> None:
    """The child's side: a thread waits for the end of the pipe and calls the function."""

    def wait_for_end() -> None:
        while os.read(read_end, 1):
            pass
        function()

    threading.Thread(target=wait_for_end, name="stop-with", daemon=True).start()


def terminate_when_parent_ends(read_end: int) -> None:
    """Sends SIGTERM to this process."""
    call_when_parent_ends(read_end, lambda: os.kill(os.getpid(), signal.SIGTERM))
