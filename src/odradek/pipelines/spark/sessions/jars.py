"""The jars that Spark needs beside its own: the Kafka connector, JDBC drivers, and libraries of lakehouse tables.

They are fetched once, with Maven or with the resolver that Spark ships. Where no registry is reached, the variable
ODRADEK_SPARK_JARS names a folder with them, which `odradek pipeline jars` fills on a machine with access; nothing is
fetched then.
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

import pyspark

from odradek.pipelines.definition.checks import OWN_JARS
from odradek.pipelines.definition.model import LakehouseTarget
from odradek.pipelines.definition.spark_version import LAKEHOUSE_HINT, LAKEHOUSE_LIBRARIES, lakehouse_refusal
from odradek.pipelines.definition.vocabulary import LakehouseFormat
from odradek.pipelines.spark.sessions.failures import PipelineError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from odradek.pipelines.definition.model import Pipeline

    Say = Callable[[str], None]

SCALA = "2.13"
FETCH_TIMEOUT_S = 300.0
GIVEN_FOLDER = "ODRADEK_SPARK_JARS"


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


class JarsMissing(PipelineError):
    """No registry has the jars, or there is no tool to fetch them with, or the given folder lacks them."""


class FetchFailed(Exception):
    """A jar could not be fetched."""

    def __init__(self, jar: Jar, reason: str) -> None:
        super().__init__(f"{jar}: {reason}")
        self.jar = jar


@dataclass(frozen=True, slots=True)
class Library:
    """What is needed, and the sets of jars of which each serves, best first."""

    what: str
    sets: tuple[tuple[Jar, ...], ...]

    def jars_in(self, folder: Path) -> list[Path] | None:
        """The paths of the first set that the folder has; None if it has none."""
        found = ([folder / each.file for each in jars] for jars in self.sets)
        return next((paths for paths in found if all(each.exists() for each in paths)), None)


def connector_set(connector: str, token_provider: str) -> tuple[Jar, ...]:
    return (
        Jar("org.apache.spark", f"spark-sql-kafka-0-10_{SCALA}", connector),
        Jar("org.apache.spark", f"spark-token-provider-kafka-0-10_{SCALA}", token_provider),
        Jar("org.apache.kafka", "kafka-clients", "3.9.2"),
        Jar("org.apache.commons", "commons-pool2", "2.13.1"),
    )


TOKEN_PROVIDER = "4.0.0"  # works with every connector of Spark 4
PINNED = connector_set("4.2.0", TOKEN_PROVIDER)  # works with PySpark 4.2 and 4.3
POSTGRESQL = Jar("org.postgresql", "postgresql", "42.7.8")
SQLITE = Jar("org.xerial", "sqlite-jdbc", "3.50.3.0")
LAKEHOUSE = {
    LakehouseFormat.DELTA: (
        Jar("io.delta", f"delta-spark_4.1_{SCALA}", "4.1.0"),
        Jar("io.delta", "delta-storage", "4.1.0"),
    ),
    LakehouseFormat.ICEBERG: (Jar("org.apache.iceberg", f"iceberg-spark-runtime-4.1_{SCALA}", "1.11.0"),),
}


def connector(spark_version: str) -> Library:
    """A registry may lack the connector of this version, or its token provider."""
    exact = connector_set(spark_version, spark_version)
    return Library("Spark's Kafka connector", (exact, connector_set(spark_version, TOKEN_PROVIDER), PINNED))


def driver(jar: Jar) -> Library:
    return Library(f"the JDBC driver {jar.artifact}", ((jar,),))


def lakehouse(wanted: LakehouseFormat) -> Library:
    refusal = lakehouse_refusal(wanted)
    if refusal is not None:
        raise JarsMissing(f"{refusal}; {LAKEHOUSE_HINT}")
    return Library(LAKEHOUSE_LIBRARIES[wanted], (LAKEHOUSE[wanted],))


def libraries() -> list[Library]:
    """All that can be used with the installed PySpark."""
    formats = [each for each in LakehouseFormat if lakehouse_refusal(each) is None]
    return [connector(pyspark.__version__), driver(POSTGRESQL), driver(SQLITE), *map(lakehouse, formats)]


def connector_jars(spark_version: str, say: Say) -> list[str]:
    return paths_of(connector(spark_version), spark_version, say)


def driver_jar(jar: Jar, say: Say = lambda _text: None) -> str:
    (path,) = paths_of(driver(jar), f"{jar.artifact}-{jar.version}", say)
    return path


def lakehouse_jars(wanted: LakehouseFormat, say: Say) -> list[str]:
    return paths_of(lakehouse(wanted), f"{pyspark.__version__}-{wanted}-{LAKEHOUSE[wanted][0].version}", say)


def paths_of(library: Library, name: str, say: Say) -> list[str]:
    """Paths of the jars of a library: in the given folder, or in the cache under this name, fetched if necessary."""
    given = os.environ.get(GIVEN_FOLDER)
    folder = Path(given) if given else cache_folder() / name
    found = library.jars_in(folder)
    if found is None and given:
        wanted = " or ".join(dict.fromkeys(jars[0].file for jars in library.sets))
        raise JarsMissing(
            f"{given} ({GIVEN_FOLDER}) lacks {library.what} for PySpark {pyspark.__version__} ({wanted}); "
            f"{how_to_fill('the folder')}"
        )
    if found is None:
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder / "lock"):
            try:
                found = library.jars_in(folder) or fetch_library(library, folder, fetchers(), say)
            except JarsMissing as error:
                raise JarsMissing(f"{error}; {how_to_fill(f'a folder, and name it in {GIVEN_FOLDER}')}") from error
    return sorted(map(str, found))


def fetch_all(folder: Path, say: Say) -> list[str]:
    """Fetches what the folder lacks of all libraries; returns the names of their files."""
    folder.mkdir(parents=True, exist_ok=True)
    wanted = libraries()
    for each in wanted:
        if each.jars_in(folder) is None:
            fetch_library(each, folder, fetchers(), say)
    return sorted(path.name for each in wanted for path in each.jars_in(folder) or ())


def how_to_fill(folder: str) -> str:
    return f"fill {folder} by `odradek pipeline jars DIR` on a machine that reaches a registry"


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


def fetch_library(library: Library, folder: Path, ways: Sequence[Callable[[Jar, Path], None]], say: Say) -> list[Path]:
    """Fetches the first set that can be fetched; returns the paths of its jars."""
    if not ways:
        raise JarsMissing(f"{library.what} cannot be fetched: neither mvn nor java is on the PATH")
    # The other fetcher uses the same registry, so that it is tried for the last set only.
    attempts = [*((jars, ways[0]) for jars in library.sets), *((library.sets[-1], way) for way in ways[1:])]
    failures: list[FetchFailed] = []
    for jars, way in attempts:
        if way is ways[0] and jars[0] in {each.jar for each in failures}:
            continue
        try:
            fetch_set(library.what, jars, folder, way, say)
        except FetchFailed as error:
            failures.append(error)
        else:
            return [folder / each.file for each in jars]
    raise JarsMissing(f"no registry has {library.what}: {'; '.join(dict.fromkeys(map(str, failures)))}")


def fetch_set(what: str, jars: Sequence[Jar], folder: Path, way: Callable[[Jar, Path], None], say: Say) -> None:
    """Fetches all jars of a set or none; they are moved into place together."""
    with tempfile.TemporaryDirectory(dir=folder, prefix="fetching-") as unfinished:
        for number, jar in enumerate(jars, 1):
            say(f"fetching {what}, {number} of {len(jars)}: {jar.file}")
            way(jar, Path(unfinished))
            if not (Path(unfinished) / jar.file).exists():
                raise FetchFailed(jar, "missing after the fetch")
        for jar in jars:
            (Path(unfinished) / jar.file).replace(folder / jar.file)


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
        raise FetchFailed(jar, f"{command[0]} timed out after {FETCH_TIMEOUT_S:.0f} s") from None
    if done.returncode:
        raise FetchFailed(jar, f"{command[0]} failed to fetch it")


def ivy_jar() -> Path | None:
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        return None
    return next(iter(sorted((Path(spec.origin).parent / "jars").glob("ivy-*.jar"))), None)


EXTENSIONS = {
    LakehouseFormat.DELTA: "io.delta.sql.DeltaSparkSessionExtension",
    LakehouseFormat.ICEBERG: "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
}
EXTENSIONS_KEY = "spark.sql.extensions"
CATALOG_KEY = "spark.sql.catalog.spark_catalog"
DELTA_CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"


def lakehouse_settings(pipeline: Pipeline, say: Callable[[str], None]) -> dict[str, str]:
    """The Spark settings of a pipeline with those that its lakehouse tables need; fetches the libraries."""
    formats = sorted({each.target.format for each in pipeline.sinks if isinstance(each.target, LakehouseTarget)})
    settings = dict(pipeline.spark)
    if not formats:
        return settings
    present = [each for each in settings.get(EXTENSIONS_KEY, "").split(",") if each]
    settings[EXTENSIONS_KEY] = ",".join(dict.fromkeys([*present, *(EXTENSIONS[each] for each in formats)]))
    if LakehouseFormat.DELTA in formats:
        settings.setdefault(CATALOG_KEY, DELTA_CATALOG)
    if not any(each in pipeline.spark for each in OWN_JARS):
        settings["spark.jars"] = ",".join(jar for each in formats for jar in lakehouse_jars(each, say))
    return settings
