"""What performs a step: one driver per client. One that is another program speaks JSON, a line per step and answer."""

import contextlib
import json
import selectors
import subprocess
from collections.abc import Sequence
from typing import Protocol

from tests.clients.scenario.steps import Json

ANSWER_TIMEOUT_SECONDS = 60


class DriverEnded(Exception):
    """The program behind a driver is gone: there is no sense in going on with the scenario."""


class Driver(Protocol):
    """`perform` answers as `scenario/` says; what the broker refuses is the answer `{"error": NAME}`, no exception."""

    def perform(self, verb: str, arguments: dict[str, Json]) -> Json: ...

    def close(self) -> None: ...


class LineDriver:
    """A driver that is another program."""

    def __init__(self, command: Sequence[str]) -> None:
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def perform(self, verb: str, arguments: dict[str, Json]) -> Json:
        line = self.exchange({"verb": verb, "arguments": arguments})
        return json.loads(line)

    def exchange(self, request: Json, timeout_seconds: float = ANSWER_TIMEOUT_SECONDS) -> bytes:
        to_program, from_program = self._process.stdin, self._process.stdout
        assert to_program is not None
        assert from_program is not None
        try:
            to_program.write(json.dumps(request).encode() + b"\n")
            to_program.flush()
        except BrokenPipeError:
            raise DriverEnded(f"status {self._process.wait(10)}") from None
        with selectors.DefaultSelector() as selector:
            selector.register(from_program, selectors.EVENT_READ)
            if not selector.select(timeout_seconds):
                self._process.kill()
                raise DriverEnded(f"killed: no answer in {timeout_seconds} s to {request}")
        line = from_program.readline()
        if not line:
            raise DriverEnded(f"status {self._process.wait(10)} at {request}")
        return line

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
