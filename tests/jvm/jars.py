"""Apache Kafka's jars (broker, tools, Java clients) and the few Java sources of these tests, fetched and compiled once.

`missing()` names in one line the program that this machine lacks; a failure with all of them is an error, not a skip.
"""

import functools
import shutil
import subprocess
import zipfile
from pathlib import Path

from tests.jvm.build_cache import build_once, cache_directory, content_digest
from tests.jvm.kafka_archive import FLAGS, archive_flags

KAFKA_VERSION = "4.3.1"
NEWEST_CLIENT_VERSION = "4.4.0"
HERE = Path(__file__).parent
POM = HERE / "pom.xml"
CLIENT_POM = HERE / "client" / "pom.xml"
SOURCES = tuple(
    source
    for room in (HERE, HERE.parent / "clients", HERE.parent / "groups")
    for source in sorted((room / "java").rglob("*.java"))
)


def _kafka_directory() -> Path:
    return cache_directory() / f"kafka-{KAFKA_VERSION}"


def _libraries_of_pom() -> dict[Path, Path]:
    return {
        POM: _kafka_directory() / "libs",
        CLIENT_POM: cache_directory() / f"kafka-clients-{NEWEST_CLIENT_VERSION}" / "libs",
    }


def missing() -> str | None:
    """The program that tests with a JVM need and this machine lacks, in one line; None if it has all."""
    if shutil.which("java") is None or shutil.which("javac") is None:
        return "needs a JDK (java and javac, 17 or newer) on the PATH"
    are_fetched = all((directory / ".done").exists() for directory in _libraries_of_pom().values())
    if shutil.which("mvn") is None and not are_fetched:
        return f"needs mvn on the PATH, once, to fetch Apache Kafka {KAFKA_VERSION}"
    return None


def run_build_command(command: list[str], purpose: str) -> None:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{purpose} failed: {(done.stdout + done.stderr).strip()[-2000:]}")


def libraries(pom: Path = POM) -> Path:
    """The directory with every jar of this pom.xml and what it needs."""

    def fetch(directory: Path) -> None:
        command = ["mvn", "-q", "-B", "-f", str(pom), "dependency:copy-dependencies", f"-DoutputDirectory={directory}"]
        run_build_command(command, f"fetching the jars of {pom} through mvn")

    return build_once(_libraries_of_pom()[pom], [pom], fetch)


def classpath(pom: Path = POM) -> str:
    """The tests' own classes, compiled with the jars of POM, and the jars of this pom.xml."""
    jars = libraries()

    def compile_sources(directory: Path) -> None:
        command = ["javac", "-nowarn", "-Xlint:none", "-d", str(directory), "-cp", f"{jars}/*", *map(str, SOURCES)]
        run_build_command(command, "compiling the tests' Java sources")
        with zipfile.ZipFile(directory / "classes.jar", "w") as file:  # an archive allows no folders on the class path
            for each in sorted(directory.rglob("*.class")):
                file.write(each, each.relative_to(directory))

    # A directory per content: a concurrent run of another checkout may load classes of its own.
    sources = [POM, *SOURCES]
    classes = build_once(_kafka_directory() / f"jar-{content_digest(sources)}", sources, compile_sources)
    return f"{classes}/classes.jar:{libraries(pom)}/*"


@functools.cache
def quick_start_flags(pom: Path = POM) -> tuple[str, ...]:
    if pom != POM:  # the archive is made with Kafka's tools
        return (*FLAGS, "-Xshare:auto")
    return tuple(archive_flags(classpath(), [POM, *SOURCES]))


def java_command(
    main_class: str, *arguments: str, heap: str = "256m", quick_start: bool = True, pom: Path = POM
) -> list[str]:
    """The command that runs `main_class` with the jars of `pom`; `quick_start` trades peak speed for start-up, so
    benchmarks turn it off."""
    flags = [f"-Xmx{heap}"]
    if quick_start:
        flags += quick_start_flags(pom)
    return [
        "java",
        *flags,
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
        "-Djava.awt.headless=true",
        "-cp",
        classpath(pom),
        main_class,
        *arguments,
    ]
