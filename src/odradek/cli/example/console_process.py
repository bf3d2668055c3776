"""`odradek console` as a child process of `odradek up`, on a port that is free."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import signal
import socket
import subprocess
import threading
from typing import IO, TYPE_CHECKING, Self

from odradek.conventions.failures import Failure, without_prefix
from odradek.local.child_process import start_command, stop_command

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
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", DEFAULT_PORT if wanted is None else wanted))
        except OSError as error:
            if wanted is None:
                return 0
            reason = (error.strerror or str(error)).lower()
            raise Failure(f"--console-port {wanted}: {reason}; choose another one, or 0 for a free one") from None
    return DEFAULT_PORT if wanted is None else wanted


class ConsoleProcess:
    """Reports the address of the page, or why there is none. It ends with this process, however that ends."""

    def __init__(
        self, connection: Sequence[str], port: int, report: Callable[[str], None], report_failure: Callable[[str], None]
    ) -> None:
        self._arguments = [*connection, "--listen", f"127.0.0.1:{port}", "--format", "json"]
        self._report = report
        self._report_failure = report_failure
        self._is_stopping = False

    def __enter__(self) -> Self:
        self._process, self._lifetime = start_command(["console"], self._arguments, stdout=subprocess.PIPE)
        threading.Thread(target=self._read_address, args=(self._process.stdout,), daemon=True).start()
        threading.Thread(target=self._read_errors, args=(self._process.stderr,), daemon=True).start()
        return self

    def _read_address(self, output: IO[str]) -> None:
        with output:
            for line in output:
                with contextlib.suppress(ValueError, KeyError):
                    self._report(json.loads(line)["console"])

    def _read_errors(self, errors: IO[str]) -> None:
        """Lines of changes are dropped; the last line of a process that ends by itself is its failure."""
        last = ""
        with errors:
            for line in errors:
                last = line.strip() or last
        if not self._is_stopping and self._process.wait():
            self._report_failure(without_prefix(last) or f"exit code {self._process.returncode}")

    def __exit__(self, *_error: object) -> None:
        self._is_stopping = True
        self._process.send_signal(signal.SIGTERM)
        stop_command(self._process, self._lifetime, STOP_TIMEOUT_S)
