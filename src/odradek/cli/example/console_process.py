"""`odradek console` as a child process of `odradek up`, on a port that is free."""

from __future__ import annotations

import importlib.util
import signal
from typing import TYPE_CHECKING, Self

from odradek.conventions.failures import Failure
from odradek.local.child_process import ChildProcess, odradek_command
from odradek.local.ports import listening_error

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

DEFAULT_PORT = 8484
STOP_TIMEOUT_S = 10.0
PACKAGES = ("jinja2", "starlette", "uvicorn")
INSTALL = "pip install 'odradek[console]'"


def missing_package() -> str | None:
    """The first package of the console that is not installed."""
    return next((name for name in PACKAGES if importlib.util.find_spec(name) is None), None)


def choose_port(wanted: int | None) -> int:
    """The given port; Failure if it is in use. Without one, the default port, or any other if that is in use."""
    error = listening_error(DEFAULT_PORT if wanted is None else wanted)
    if error is None:
        return DEFAULT_PORT if wanted is None else wanted
    if wanted is None:
        return 0
    reason = (error.strerror or str(error)).lower()
    raise Failure(f"--console-port {wanted}: {reason}; choose another one, or 0 for a free one")


class ConsoleProcess:
    """Reports the address of the page, or why there is none."""

    def __init__(
        self, connection: Sequence[str], port: int, report: Callable[[str], None], report_failure: Callable[[str], None]
    ) -> None:
        self._command = odradek_command("console", *connection, "--listen", f"127.0.0.1:{port}", "--format", "json")
        self._child = ChildProcess(
            on_ready=lambda: report(self._child.facts["console"]), on_output_end=self._report_early_end
        )
        self._report_failure = report_failure
        self._is_stopping = False

    def __enter__(self) -> Self:
        self._child.start(self._command)
        return self

    def _report_early_end(self) -> None:
        self._child.wait()
        if not self._is_stopping and self._child.process is not None and self._child.process.returncode:
            self._report_failure(self._child.error_text())

    def __exit__(self, *_error: object) -> None:
        self._is_stopping = True
        self._child.end(signal.SIGTERM, STOP_TIMEOUT_S)
