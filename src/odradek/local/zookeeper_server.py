"""One ZooKeeper server as a Java process: its jars, its configuration, its start, and whether it answers.

PySpark has the jars, and Maven Central has them.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from typing import TYPE_CHECKING

from odradek.conventions.failures import Failure
from odradek.local.child_process import end_process
from odradek.local.ports import find_stable_port

if TYPE_CHECKING:
    from collections.abc import Sequence

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
