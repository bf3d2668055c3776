"""Runs the command `odradek` in forks of `command_server`, one server for each test process."""

from __future__ import annotations

import array
import functools
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ROOT = Path(__file__).parents[2]


class CommandServer:
    """It ends when this process does, because its standard input ends."""

    def __init__(self) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="odradek-commands-")
        self._path = os.path.join(self._directory.name, "socket")
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind(self._path)
            listener.listen(16)
            descriptor = listener.fileno()
            command = [sys.executable, "-m", "tests.cli.command_server", str(descriptor)]
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, cwd=ROOT, pass_fds=[descriptor])

    def run(
        self, arguments: Sequence[str], environment: Mapping[str, str], stdin: bytes, timeout_s: float
    ) -> subprocess.CompletedProcess[bytes]:
        with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
            given.write(stdin)
            given.seek(0)
            code = self._run(arguments, environment, (given, output, errors), timeout_s)
            return subprocess.CompletedProcess(arguments, code, content_of(output), content_of(errors))

    def _run(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        streams: Sequence[BinaryIO],
        timeout_s: float,
    ) -> int:
        words = [os.fspath(each) for each in arguments]
        request = {"arguments": words, "environment": dict(environment), "directory": os.getcwd()}
        descriptors = array.array("i", [stream.fileno() for stream in streams])
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
            connection.connect(self._path)
            rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, descriptors)]
            connection.sendmsg([json.dumps(request).encode()], rights)
            pid = int(connection.recv(32))
            connection.settimeout(timeout_s)
            try:
                return int(connection.recv(32))
            except TimeoutError:
                os.kill(pid, signal.SIGKILL)
                raise subprocess.TimeoutExpired(list(arguments), timeout_s) from None


def content_of(stream: BinaryIO) -> bytes:
    stream.seek(0)
    return stream.read()


@functools.cache
def command_server() -> CommandServer:
    return CommandServer()
