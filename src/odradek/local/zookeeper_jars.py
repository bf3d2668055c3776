"""The jars that run ZooKeeper: PySpark has them, and Maven Central has them."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil

from odradek.conventions.failures import Failure

# Jars without which the server does not start, and those that print its errors.
NEEDED = ("zookeeper", "zookeeper-jute", "slf4j-api", "metrics-core", "snappy-java")
FOR_ERRORS = ("log4j-api", "log4j-core", "log4j-slf4j2-impl", "logback-classic", "logback-core", "slf4j-simple")

ADVICE = (
    "pip install 'odradek[pipelines]', which brings PySpark with them, or fetch org.apache.zookeeper:zookeeper:3.9.5 "
    "with its dependencies from Maven Central into a directory, and name it with --jars"
)

_JAR = re.compile(r"(?P<name>.+?)-(?P<version>\d[^/]*)\.jar")


def find_jars(directory: str | None) -> list[str]:
    """The jars in this directory, or those of PySpark. A Failure names what is missing and how to get it."""
    found = _by_name(directory if directory is not None else _pyspark_directory())
    missing = [name for name in NEEDED if name not in found]
    if missing:
        place = directory or "PySpark"
        raise Failure(f"{place} has no jar of {', '.join(missing)}: {ADVICE}")
    return [found[name] for name in (*NEEDED, *FOR_ERRORS) if name in found]


def find_java() -> str:
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if java is None or not os.path.exists(java):
        raise Failure("ZooKeeper needs Java, 11 or newer: install it, or set JAVA_HOME")
    return java


def zookeeper_version(jars: list[str]) -> str:
    (version,) = [
        match["version"]
        for jar in jars
        if (match := _JAR.fullmatch(os.path.basename(jar))) and match["name"] == NEEDED[0]
    ]
    return version


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
