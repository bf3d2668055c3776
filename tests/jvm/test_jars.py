"""What a machine lacks is said in one line."""

from pathlib import Path

import pytest

from tests.jvm import jars


def tool(directory: Path, name: str) -> None:
    file = directory / name
    file.write_text("#!/bin/sh\n")
    file.chmod(0o755)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with no programs and an empty cache; the directory of its programs."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def test_machine_without_java_says_so(machine: Path) -> None:
    assert jars.missing() == "needs a JDK (java and javac, 17 or newer) on the PATH"


def test_machine_without_maven_says_so(machine: Path) -> None:
    tool(machine, "java")
    tool(machine, "javac")
    assert jars.missing() == f"needs mvn on the PATH, once, to fetch Apache Kafka {jars.KAFKA_VERSION}"


def test_machine_with_both_lacks_nothing(machine: Path) -> None:
    for name in ("java", "javac", "mvn"):
        tool(machine, name)
    assert jars.missing() is None


def test_jars_that_are_there_need_no_maven(machine: Path) -> None:
    tool(machine, "java")
    tool(machine, "javac")
    cache = machine / "cache" / "odradek"
    for name in (f"kafka-{jars.KAFKA_VERSION}", f"kafka-clients-{jars.NEWEST_CLIENT_VERSION}"):
        (cache / name / "libs").mkdir(parents=True)
        (cache / name / "libs" / ".done").touch()
    assert jars.missing() is None


@pytest.mark.parametrize(
    ("pom", "version"), [(jars.POM, jars.KAFKA_VERSION), (jars.CLIENT_POM, jars.NEWEST_CLIENT_VERSION)]
)
def test_the_pom_has_the_version_that_names_its_directory(pom: Path, version: str) -> None:
    assert f"version>{version}</" in pom.read_text()
