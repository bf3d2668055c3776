"""Fetches Spark's Kafka connector for the installed PySpark once, with Maven or with the resolver that Spark ships.

The connector of exactly this Spark version is tried first, with its token provider or with a pinned one (a registry may
lack either), then a pinned set that is known to work with it.
"""

from __future__ import annotations

import fcntl
import importlib.util
import os
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from odradek.pipelines.spark.sessions.failures import PipelineError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

SCALA = "2.13"
FETCH_TIMEOUT_S = 300.0
COMPLETE = "complete"  # the file that marks a complete set of jars


class ConnectorMissing(PipelineError):
    """No registry has the connector, or there is no tool to fetch it with."""


@dataclass(frozen=True, slots=True)
class Jar:
    """A library by its Maven coordinates."""

    group: str
    artifact: str
    version: str

    @property
    def file(self) -> str:
        return f"{self.artifact}-{self.version}.jar"

    def __str__(self) -> str:
        return f"{self.group}:{self.artifact}:{self.version}"


def connector_set(connector: str, token_provider: str) -> tuple[Jar, ...]:
    return (
        Jar("org.apache.spark", f"spark-sql-kafka-0-10_{SCALA}", connector),
        Jar("org.apache.spark", f"spark-token-provider-kafka-0-10_{SCALA}", token_provider),
        Jar("org.apache.kafka", "kafka-clients", "3.9.2"),
        Jar("org.apache.commons", "commons-pool2", "2.13.1"),
    )


TOKEN_PROVIDER = "4.0.0"  # works with every connector of Spark 4
PINNED = connector_set("4.2.0", TOKEN_PROVIDER)  # works with PySpark 4.2 and 4.3


def connector_jars(spark_version: str, say: Callable[[str], None]) -> list[str]:
    """Paths of the connector's jars for this Spark version; fetches them if they are not cached."""
    folder = cache_folder() / spark_version
    if not (folder / COMPLETE).exists():
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder / "lock"):
            if not (folder / COMPLETE).exists():
                fetch_connector(spark_version, folder, fetchers(), say)
    return sorted(str(path) for path in folder.glob("*.jar"))


def cache_folder() -> Path:
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "odradek" / "spark"


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Holds a file lock, which the kernel releases when the process ends."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def fetchers() -> list[Callable[[Jar, Path], None]]:
    """The fetch functions available on this machine."""
    found: list[Callable[[Jar, Path], None]] = []
    if shutil.which("mvn"):
        found.append(fetch_by_maven)
    if shutil.which("java") and ivy_jar() is not None:
        found.append(fetch_by_ivy)
    return found


def fetch_connector(
    spark_version: str, folder: Path, ways: Sequence[Callable[[Jar, Path], None]], say: Callable[[str], None]
) -> None:
    if not ways:
        raise ConnectorMissing("Spark's Kafka connector cannot be fetched: neither mvn nor java is on the PATH")
    exact = connector_set(spark_version, spark_version)
    reasons: list[str] = []
    other_token_provider = connector_set(spark_version, TOKEN_PROVIDER)
    # The other fetcher uses the same registry.
    attempts = [(exact, ways[0]), (other_token_provider, ways[0]), *((PINNED, way) for way in ways)]
    for jars, way in attempts:
        if reasons and reasons[0].startswith(f"{jars[0]}:"):
            continue  # the connector of this version is what is missing
        try:
            fetch_set(jars, folder, way, say)
        except ConnectorMissing as error:
            reasons.append(str(error))
        else:
            return
    raise ConnectorMissing(f"no registry has Spark's Kafka connector: {'; '.join(dict.fromkeys(reasons))}")


def fetch_set(
    jars: Sequence[Jar],
    folder: Path,
    way: Callable[[Jar, Path], None],
    say: Callable[[str], None],
    what: str = "Spark's Kafka connector",
) -> None:
    """Fetches all jars of a set or none; they are moved into place together."""
    with tempfile.TemporaryDirectory(dir=folder, prefix="fetching-") as unfinished:
        for number, jar in enumerate(jars, 1):
            say(f"fetching {what}, {number} of {len(jars)}: {jar.file}")
            way(jar, Path(unfinished))
            if not (Path(unfinished) / jar.file).exists():
                raise ConnectorMissing(f"{jar} is missing after the fetch")
        for jar in jars:
            (Path(unfinished) / jar.file).replace(folder / jar.file)
    (folder / COMPLETE).write_text("\n".join(map(str, jars)) + "\n")


def fetch_by_maven(jar: Jar, folder: Path) -> None:
    goal = "dependency:copy"
    run_fetch(jar, ["mvn", "-q", "-B", goal, f"-Dartifact={jar}", f"-DoutputDirectory={folder}"], folder)


def fetch_by_ivy(jar: Jar, folder: Path) -> None:
    """Fetches a jar with Ivy, the resolver behind `spark.jars.packages`, which PySpark includes."""
    main = ["java", "-cp", str(ivy_jar()), "org.apache.ivy.Main", "-warn", "-notransitive", "-m2compatible"]
    what = ["-dependency", jar.group, jar.artifact, jar.version, "-confs", "default", "-types", "jar", "bundle"]
    run_fetch(jar, [*main, *what, "-retrieve", f"{folder}/[artifact]-[revision].[ext]"], folder)


def run_fetch(jar: Jar, command: Sequence[str], folder: Path) -> None:
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=FETCH_TIMEOUT_S,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        raise ConnectorMissing(f"{jar}: {command[0]} timed out after {FETCH_TIMEOUT_S:.0f} s") from None
    if done.returncode:
        raise ConnectorMissing(f"{jar}: {command[0]} failed to fetch it")


def ivy_jar() -> Path | None:
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        return None
    return next(iter(sorted((Path(spec.origin).parent / "jars").glob("ivy-*.jar"))), None)
