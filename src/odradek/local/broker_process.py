"""One broker of a supervisor as a child process: its start, its ready line, its log, its end."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from typing import IO, TYPE_CHECKING, Any

import click

from odradek.conventions.failures import PROGRAM, without_prefix
from odradek.host.lifetime_pipe import LifetimePipe
from odradek.host.service_manager import SOCKET_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from odradek.server.process_settings import ProcessSettings


class BrokerProcess:
    """`on_ready` and `on_exit` are called by threads of this process.

    The broker is in a session of its own, so that Ctrl-C in the terminal reaches the supervisor only. It stops when the
    supervisor ends, even if that is killed.
    """

    def __init__(
        self,
        settings: ProcessSettings,
        arguments: Sequence[str],
        on_ready: Callable[[BrokerProcess], None],
        on_exit: Callable[[BrokerProcess], None],
        *,
        as_json: bool,
    ) -> None:
        self.settings = settings
        self.facts: dict[str, Any] = {}  # of the last ready line
        self.is_ready = False
        self.last_error = ""
        self._arguments = arguments
        self._on_ready = on_ready
        self._on_exit = on_exit
        self._as_json = as_json
        self._process: subprocess.Popen[str] | None = None
        self._lifetime = LifetimePipe()

    @property
    def node_id(self) -> int:
        return self.settings.node_id

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        command = [sys.executable, "-m", "odradek", "broker", *self._arguments]
        command += [f"--override={each}" for each in self.settings.overrides()]
        style = os.environ.get("ODRADEK_LOG_FORMAT", "json" if self._as_json else "text")
        with self._lifetime.opened() as watched:
            self._process = subprocess.Popen(
                [*command, f"--stop-with={watched}", "--format=json"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=[watched],
                env={**os.environ, SOCKET_VARIABLE: "", "ODRADEK_LOG_FORMAT": style},  # the supervisor notifies
                text=True,
                errors="replace",
                start_new_session=True,
            )
        log = threading.Thread(target=self._copy_log, args=(self._process.stderr,), daemon=True)
        log.start()
        threading.Thread(target=self._follow, args=(self._process, log), daemon=True).start()

    def send(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)

    def wait(self, timeout_s: float | None = None) -> bool:
        """Whether the process has ended in time."""
        assert self._process is not None
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return False
        return True

    def end_text(self) -> str:
        """How the process ended: `SIGKILL`, or `exit code 1: …` with its error."""
        assert self._process is not None
        code = self._process.returncode
        if code < 0:
            return signal.Signals(-code).name
        return f"exit code {code}" + (f": {self.last_error}" if self.last_error else "")

    def _follow(self, process: subprocess.Popen[str], log: threading.Thread) -> None:
        assert process.stdout is not None
        with process.stdout as output:
            for line in output:
                self.facts = json.loads(line)
                ports = {each["listener"]: each["port"] for each in self.facts["endpoints"]}
                self.settings = self.settings.with_ports(ports)
                self.is_ready = True
                self._on_ready(self)
        log.join()
        process.wait()
        self.is_ready = False
        self._lifetime.close()
        self._on_exit(self)

    def _copy_log(self, stream: IO[str]) -> None:
        """Copy the broker's log to this process's, each line with the broker's id."""
        with stream:
            for line in stream:
                if line.startswith(PROGRAM):
                    self.last_error = without_prefix(line.strip())
                else:
                    click.echo(self._with_node_id(line.rstrip("\n")), err=True)

    def _with_node_id(self, line: str) -> str:
        if line.startswith("{"):
            with contextlib.suppress(ValueError):
                return json.dumps({"node_id": self.node_id, **json.loads(line)})
        if self._as_json:  # a line of Python itself, such as a warning
            return json.dumps({"node_id": self.node_id, "level": "warning", "event": line})
        return f"[{self.node_id}] {line}"
