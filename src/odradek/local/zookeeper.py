"""One ZooKeeper on this machine: the server as a Java process, for `odradek zookeeper`, and that command as a child.

PySpark has the jars, and Maven Central has them.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from typing import Self

from odradek.conventions.failures import Failure
from odradek.local.child_process import RunningServer, end_process, odradek_command
from odradek.local.ports import find_stable_port

# Jars without which the server does not start, and those that print its errors.
NEEDED = ("zookeeper", "zookeeper-jute", "slf4j-api", "metrics-core", "snappy-java")
FOR_ERRORS = ("log4j-api", "log4j-core", "log4j-slf4j2-impl", "logback-classic", "logback-core", "slf4j-simple")
ADVICE = (
    "pip install 'odradek[pipelines]', which brings PySpark with them, or fetch org.apache.zookeeper:zookeeper:3.9.5 "
    "with its dependencies from Maven Central into a directory, and name it with --jars"
)
STANDALONE = "org.apache.zookeeper.server.ZooKeeperServerMain"
QUICK_START = ("-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto")
START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 30.0
COMMAND_STOP_TIMEOUT_S = 60.0
CONFIG_FILE = "zoo.cfg"
OUTPUT_FILE = "zookeeper.out"
TICK_MS = 500  # sessions may be as short as two ticks

_JAR = re.compile(r"(?P<name>.+?)-(?P<version>\d[^/]*)\.jar")


def find_jars(directory: str | None) -> list[str]:
    """The jars in this directory, or those of PySpark. A Failure names what is missing and how to get it."""
    found = _by_name(directory if directory is not None else _pyspark_directory())
    missing = [name for name in NEEDED if name not in found]
    if missing:
        raise Failure(f"{directory or 'PySpark'} has no jar of {', '.join(missing)}: {ADVICE}")
    return [found[name] for name in (*NEEDED, *FOR_ERRORS) if name in found]


def _pyspark_directory() -> str:
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise Failure(f"no jars of ZooKeeper were found: {ADVICE}")
    return os.path.join(os.path.dirname(spec.origin), "jars")


def _by_name(directory: str) -> dict[str, str]:
    try:
        names = sorted(os.listdir(directory))
    except OSError as problem:
        raise Failure(f"{directory} cannot be read ({problem.strerror}): give a directory with jars") from problem
    matches = [(match["name"], name) for name in names if (match := _JAR.fullmatch(name))]
    return {jar: os.path.join(directory, name) for jar, name in matches}


def zookeeper_version(jars: Sequence[str]) -> str:
    matches = [_JAR.fullmatch(os.path.basename(jar)) for jar in jars]
    (version,) = [match["version"] for match in matches if match and match["name"] == NEEDED[0]]
    return version


def find_java() -> str:
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if java is None or not os.path.exists(java):
        raise Failure("ZooKeeper needs Java, 11 or newer: install it, or set JAVA_HOME")
    return java


def java_command(jars: Sequence[str], main_class: str, config_path: str) -> list[str]:
    options = [*QUICK_START, "-Djava.awt.headless=true", "-cp", os.pathsep.join(jars)]
    return [find_java(), *options, main_class, config_path]


def configuration(data_directory: str, host: str, port: int) -> str:
    return (
        f"tickTime={TICK_MS}\ndataDir={data_directory}\nclientPortAddress={host}\nclientPort={port}\nmaxClientCnxns=0\n"
        "admin.enableServer=false\n4lw.commands.whitelist=srvr,ruok\nautopurge.purgeInterval=1\n"
    )


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


class ZooKeeperServer:
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
        self.port = self.port or find_stable_port()
        if answers(self.host, self.port):
            raise Failure(f"a ZooKeeper runs on {self.host}:{self.port} already: choose another port with --port")
        config_path = os.path.join(self._directory, CONFIG_FILE)
        with open(config_path, "w", encoding="utf-8") as file:
            file.write(configuration(self._directory, self.host, self.port))
        with open(os.path.join(self._directory, OUTPUT_FILE), "wb") as output:
            # Its own session: an interrupt at the terminal reaches this process, which then stops the server.
            process = self.process = subprocess.Popen(
                java_command(self._jars, STANDALONE, config_path),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        deadline = time.monotonic() + START_TIMEOUT_S
        while not answers(self.host, self.port):
            if process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                reason = self._last_output() or f"it ended with exit code {process.returncode}"
                raise Failure(f"ZooKeeper did not start on {self.host}:{self.port}: {reason}")
            time.sleep(0.05)  # a poll's pause

    def stop(self) -> None:
        """A server that serves is stopped by SIGTERM; its files survive a kill, too."""
        if self.process is not None:
            end_process(self.process, signal.SIGTERM, STOP_TIMEOUT_S)

    def _last_output(self) -> str:
        with open(os.path.join(self._directory, OUTPUT_FILE), encoding="utf-8", errors="replace") as file:
            lines = [line.strip() for line in file.read().splitlines()]
        return " ".join([line for line in lines if line and not line.startswith(("at ", "SLF4J"))][-5:])


class ZooKeeperDidNotStart(RuntimeError):
    """The message is its error."""


class RunningZooKeeper(RunningServer):
    """`odradek zookeeper` with its data in its own directory. It stops when this process ends, even if it is killed."""

    def __init__(self, *, port: int = 0, data_directory: str | None = None) -> None:
        super().__init__(data_directory, "odradek-zookeeper-")
        self.host = "127.0.0.1"
        self.port = port
        self._directory = data_directory or self._temporary
        self.server_pid = 0

    @property
    def connect(self) -> str:
        """Value of `zookeeper.connect`."""
        return f"{self.host}:{self.port}"

    def start(self) -> Self:
        self.port = self.port or find_stable_port()  # one of the kernel's choice can be taken before the next start
        options = ["--format=json", f"--port={self.port}", f"--data-dir={self._directory}"]
        self._child.start(odradek_command("zookeeper", *options))
        if not self._child.wait_until_ready():  # the command itself has a time limit for the start
            self.close()
            raise ZooKeeperDidNotStart(self._child.error_text())
        self.port, self.server_pid = self._child.facts["port"], self._child.facts["pid"]
        return self

    def stop(self) -> None:
        """Sessions survive: they continue when the server runs again before they expire."""
        self._child.end(signal.SIGTERM, COMMAND_STOP_TIMEOUT_S)

    def kill(self) -> None:
        """Kill the server, as a crash would."""
        if self._child.is_running:
            os.kill(self.server_pid, signal.SIGKILL)
        self.stop()

    def suspend(self) -> None:
        """The server hangs, with its connections open, until `resume`."""
        os.kill(self.server_pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self.server_pid, signal.SIGCONT)


@contextlib.contextmanager
def zookeeper() -> Iterator[RunningZooKeeper]:
    """A running server: `with zookeeper() as running: RunningBroker({"zookeeper.connect": running.connect})`."""
    with RunningZooKeeper() as running:
        yield running
