"""Runs test classes that Apache Kafka publishes (its test jars) on Odradek, one JVM per class, one broker per test, or
as many as the test asks for.

The sources in `shim/` replace the part of Kafka's test kit that would start an in-JVM cluster. Jars and compiled
sources are kept in the cache of the tests.
"""

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

from odradek.testing import zookeeper
from tests.jvm.build_cache import build_once, cache_directory, content_digest
from tests.jvm.jars import run_build_command

HERE = Path(__file__).parent
POM = HERE / "pom.xml"
LOGGING = HERE / "log4j2.xml"
LAUNCH = HERE / "launch.py"
SHIM = tuple(sorted((HERE / "shim").glob("*.java")))
TEST_TIMEOUT = "60s"
CLUSTER_TEST_TIMEOUT = "240s"  # several processes start
CLASS_TIMEOUT_SECONDS = 1740


def reference(file_name: str = "reference.tsv") -> dict[str, set[str]]:
    """The tests of each class that Apache Kafka passes in this harness: one broker in reference.tsv, clusters in
    cluster_reference.tsv."""
    tests: dict[str, set[str]] = {}
    for line in (HERE / file_name).read_text().splitlines():
        class_name, test = line.split("\t")
        tests.setdefault(class_name, set()).add(test)
    return tests


def run_class(class_name: str, reports: Path) -> dict[str, str]:
    """The outcome of each test of the class: an empty string if it passed, else the first line of the failure."""
    return _run(class_name, reports, {}, TEST_TIMEOUT)


def run_class_on_clusters(class_name: str, reports: Path) -> dict[str, str]:
    """As `run_class`; a test that asks for several brokers gets them. One ZooKeeper serves all of them."""
    with zookeeper() as coordination:
        return _run(class_name, reports, {"ZOOKEEPER_CONNECT": coordination.connect}, CLUSTER_TEST_TIMEOUT)


def run_class_on_apache_kafka(class_name: str, reports: Path) -> dict[str, str]:
    """As `run_class_on_clusters`, on Apache Kafka's brokers behind the same shim."""
    return _run(class_name, reports, {"CLUSTER_KIND": "apache-kafka"}, CLUSTER_TEST_TIMEOUT)


def _run(class_name: str, reports: Path, settings: dict[str, str], test_timeout: str) -> dict[str, str]:
    command = [
        "java", "-Xmx700m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:+EnableDynamicAgentLoading",
        f"-Djunit.jupiter.execution.timeout.default={test_timeout}", f"-Dlog4j2.configurationFile={LOGGING}",
        "-cp", _classpath(), "org.junit.platform.console.ConsoleLauncher", "execute", "--disable-banner",
        "--details=none", "--disable-ansi-colors", f"--reports-dir={reports / class_name}", "-n", ".*",
        "-c", class_name,
    ]  # fmt: skip
    environment = {**os.environ, "BROKER_COMMAND": f"{sys.executable} {LAUNCH}", **settings}
    done = subprocess.run(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=CLASS_TIMEOUT_SECONDS,
        text=True,
        check=False,
    )
    outcomes = read_outcomes(reports / class_name)
    assert outcomes, f"{class_name}: no test was run: {done.stdout[-2000:]}"
    return outcomes


def read_outcomes(reports: Path) -> dict[str, str]:
    """The tests in JUnit's reports, with what `run_class` returns for each."""
    outcomes = {}
    for report in reports.glob("TEST-*.xml"):
        for case in ElementTree.parse(report).getroot().iter("testcase"):
            failures = [case.find(kind) for kind in ("failure", "error", "skipped")]
            messages = [each.get("message") or each.text or "failed" for each in failures if each is not None]
            outcomes[case.get("name", "")] = messages[0].splitlines()[0] if messages else ""
    return outcomes


def _classpath() -> str:
    kept = cache_directory() / "conformance"

    def fetch(directory: Path) -> None:
        command = ["mvn", "-q", "-B", "-f", str(POM), "dependency:copy-dependencies", f"-DoutputDirectory={directory}"]
        run_build_command(command, "fetching Apache Kafka's test jars through mvn")

    libraries = build_once(kept / "libraries", [POM], fetch)

    def compile_shim(directory: Path) -> None:
        command = ["javac", "-nowarn", "-Xlint:none", "-d", str(directory), "-cp", f"{libraries}/*", *map(str, SHIM)]
        run_build_command(command, "compiling the shim")

    # A directory per content: a concurrent run of another checkout may load classes of its own.
    shim = build_once(kept / f"shim-{content_digest([POM, *SHIM])}", [POM, *SHIM], compile_shim)
    return f"{shim}:{libraries}/*"
