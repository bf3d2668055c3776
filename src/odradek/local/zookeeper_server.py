"""One ZooKeeper server as a child process: its configuration, its start, and whether it answers."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from typing import TYPE_CHECKING

from odradek.conventions.failures import Failure
from odradek.local.zookeeper_jars import find_java

if TYPE_CHECKING:
    from collections.abc import Sequence

STANDALONE = "org.apache.zookeeper.server.ZooKeeperServerMain"
QUICK_START = ("-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto")
START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 30.0
PORT_ATTEMPTS = 3
CONFIG_FILE = "zoo.cfg"
OUTPUT_FILE = "zookeeper.out"
TICK_MS = 500  # sessions may be as short as two ticks


def free_port(host: str) -> int:
    with socket.socket() as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


def configuration(data_directory: str, host: str, port: int) -> str:
    return (
        f"tickTime={TICK_MS}\ndataDir={data_directory}\nclientPortAddress={host}\nclientPort={port}\nmaxClientCnxns=0\n"
        "admin.enableServer=false\n4lw.commands.whitelist=srvr,ruok\nautopurge.purgeInterval=1\n"
    )


def java_command(jars: Sequence[str], main_class: str, config_path: str) -> list[str]:
    return [
        find_java(), *QUICK_START, "-Djava.awt.headless=true", "-cp", os.pathsep.join(jars), main_class, config_path,
    ]  # fmt: skip


def answers(host: str, port: int) -> bool:
    """Whether a server that serves clients answers `srvr`."""
    try:
        with socket.create_connection((host, port), timeout=2) as connection:
            connection.sendall(b"srvr")
            answer = b""
            while piece := connection.recv(4096):
                answer += piece
    except OSError:
        return False
    return b"Mode:" in answer


class Server:
    """`port` 0 is a free one, chosen at the start."""

    def __init__(self, jars: Sequence[str], data_directory: str, host: str, port: int) -> None:
        self._jars = jars
        self._directory = os.path.abspath(data_directory)
        self.host = host
        self.port = port
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Return when the server answers; a Failure with the end of its output when it does not start."""
        os.makedirs(self._directory, exist_ok=True)
        is_any_port = self.port == 0
        for attempt in range(PORT_ATTEMPTS):
            if is_any_port:
                self.port = free_port(self.host)
            failure = self._start_once()
            if failure is None:
                return
            if not is_any_port or attempt == PORT_ATTEMPTS - 1:
                raise Failure(failure)

    def _start_once(self) -> str | None:
        """Why the server did not start."""
        if answers(self.host, self.port):
            return f"a ZooKeeper runs on {self.host}:{self.port} already: choose another port with --port"
        config_path = os.path.join(self._directory, CONFIG_FILE)
        with open(config_path, "w", encoding="utf-8") as file:
            file.write(configuration(self._directory, self.host, self.port))
        with open(os.path.join(self._directory, OUTPUT_FILE), "wb") as output:
            # Its own session: an interrupt at the terminal reaches this process, which then stops the server.
            self.process = subprocess.Popen(
                java_command(self._jars, STANDALONE, config_path),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        deadline = time.monotonic() + START_TIMEOUT_S
        while not answers(self.host, self.port):
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                return f"ZooKeeper did not start on {self.host}:{self.port}: {self._last_output()}"
            time.sleep(0.05)  # a poll's pause
        return None

    def stop(self) -> None:
        """A server that serves is stopped by SIGTERM; its files survive a kill, too."""
        process = self.process
        if process is None:
            return
        if process.poll() is None:
            process.terminate()
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _last_output(self) -> str:
        with open(os.path.join(self._directory, OUTPUT_FILE), encoding="utf-8", errors="replace") as file:
            lines = [line.strip() for line in file.read().splitlines()]
        told = [line for line in lines if line and not line.startswith(("at ", "SLF4J"))]
        code = self.process.returncode if self.process is not None else None
        return " ".join(told[-5:]) or f"it ended with exit code {code}"
