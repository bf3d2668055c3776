"""Other commands of `odradek` as child processes, which end with this one, even if it is killed."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from odradek.host.lifetime_pipe import LifetimePipe

if TYPE_CHECKING:
    from collections.abc import Sequence


def start_command(
    command: Sequence[str], arguments: Sequence[str], *, stdout: int = subprocess.DEVNULL
) -> tuple[subprocess.Popen[str], LifetimePipe]:
    """The process, and the pipe at whose end it stops. Its standard error is a pipe."""
    lifetime = LifetimePipe()
    with lifetime.opened() as watched:
        process = subprocess.Popen(
            [sys.executable, "-m", "odradek", *command, f"--stop-with={watched}", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=subprocess.PIPE,
            pass_fds=[watched],
            text=True,
            errors="replace",
            start_new_session=True,  # Ctrl-C in the terminal reaches this process only, which then stops the child
        )
    return process, lifetime


def stop_command(process: subprocess.Popen[str], lifetime: LifetimePipe, timeout_s: float) -> None:
    """Waits for the end of a process that was signalled, and kills it when the time is over."""
    try:
        process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    finally:
        lifetime.close()
