"""A Kafka Streams application as a process: `java/odradek/StreamsApp.java` with the jars of `pom.xml`."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import IO

from tests.jvm.build_cache import build_once, cache_directory, content_digest
from tests.jvm.jars import run_build_command

HERE = Path(__file__).parent
POM = HERE / "pom.xml"
SOURCE = HERE / "java" / "odradek" / "StreamsApp.java"


def _classpath() -> str:
    kept = cache_directory() / "streams"

    def fetch(directory: Path) -> None:
        command = ["mvn", "-q", "-B", "-f", str(POM), "dependency:copy-dependencies", f"-DoutputDirectory={directory}"]
        run_build_command(command, "fetching Kafka Streams through mvn")

    jars = build_once(kept / "libs", [POM], fetch)

    def compile_source(directory: Path) -> None:
        command = ["javac", "-nowarn", "-Xlint:none", "-d", str(directory), "-cp", f"{jars}/*", str(SOURCE)]
        run_build_command(command, "compiling the application")

    classes = build_once(kept / f"classes-{content_digest([POM, SOURCE])}", [POM, SOURCE], compile_source)
    return f"{classes}:{jars}/*"


class StreamsApp:
    """Restarted, it restores its state from its topics and continues."""

    def __init__(self, kind: str, servers: str, name: str, folder: Path, topics: list[str]) -> None:
        self._command = [
            "java", "-Xmx400m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC",
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", _classpath(), "odradek.StreamsApp",
            kind, servers, name, str(folder / "state"), *topics,
        ]  # fmt: skip
        self._log: IO[bytes] = (folder / "app.log").open("ab")
        self._process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(self._command, stdin=subprocess.DEVNULL, stdout=self._log, stderr=subprocess.STDOUT)

    def kill_and_start(self) -> None:
        self._kill()
        self._process = self._start()

    def _kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        self._kill()
        self._log.close()
