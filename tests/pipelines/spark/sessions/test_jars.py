"""The jars of Spark: the exact version first, the pinned set when there is none, once for all processes, or given."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from odradek.pipelines.spark.sessions import jars as jar_files
from odradek.pipelines.spark.sessions.jars import (
    PINNED,
    SQLITE,
    FetchFailed,
    Jar,
    JarsMissing,
    connector,
    connector_jars,
    driver_jar,
    fetch_all,
    fetch_library,
)

SAID: list[str] = []


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("ODRADEK_SPARK_JARS", raising=False)
    return tmp_path / "odradek" / "spark"


class Registry:
    """A registry that has some jars."""

    def __init__(self, *versions: str) -> None:
        self.versions = set(versions)
        self.asked: list[str] = []

    def __call__(self, jar: Jar, folder: Path) -> None:
        self.asked.append(str(jar))
        if jar.version not in self.versions:
            raise FetchFailed(jar, "not found")
        (folder / jar.file).write_bytes(b"jar")


OTHERS = ("3.9.2", "2.13.1")


def test_the_exact_version_comes_first(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    registry = Registry("9.9.9", "4.2.0", "4.0.0", *OTHERS)
    monkeypatch.setattr(jar_files, "fetchers", lambda: [registry])
    jars = connector_jars("9.9.9", SAID.append)
    assert sum("9.9.9" in Path(jar).name for jar in jars) == 2
    assert len(jars) == 4


def test_the_pinned_set_is_the_fallback_and_nothing_is_fetched_twice(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = Registry("4.2.0", "4.0.0", *OTHERS)
    monkeypatch.setattr(jar_files, "fetchers", lambda: [registry])
    jars = connector_jars("9.9.9", SAID.append)
    assert sorted(Path(jar).name for jar in jars) == sorted(jar.file for jar in PINNED)
    asked = len(registry.asked)
    assert connector_jars("9.9.9", SAID.append) == jars
    assert len(registry.asked) == asked


def test_a_missing_token_provider_is_replaced(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    registry = Registry("4.2.0", "4.0.0", *OTHERS)

    def fetch(jar: Jar, folder: Path) -> None:
        if "spark-sql-kafka" in jar.artifact:
            registry.versions.add("9.9.9")
        registry(jar, folder)
        registry.versions.discard("9.9.9")

    monkeypatch.setattr(jar_files, "fetchers", lambda: [fetch])
    names = [Path(jar).name for jar in connector_jars("9.9.9", SAID.append)]
    assert "spark-sql-kafka-0-10_2.13-9.9.9.jar" in names
    assert "spark-token-provider-kafka-0-10_2.13-4.0.0.jar" in names
    assert len(names) == 4


def test_a_set_that_is_not_whole_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(JarsMissing, match=r"no registry has Spark's Kafka connector: .*9\.9\.9: not found"):
        fetch_library(connector("9.9.9"), tmp_path, [Registry("4.2.0")], SAID.append)
    assert list(tmp_path.iterdir()) == []


def test_without_anything_to_fetch_with_the_error_says_so(tmp_path: Path) -> None:
    with pytest.raises(JarsMissing, match="neither mvn nor java"):
        fetch_library(connector("9.9.9"), tmp_path, [], SAID.append)


def test_runs_at_the_same_time_fetch_once(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    registry = Registry("9.9.9", *OTHERS)
    monkeypatch.setattr(jar_files, "fetchers", lambda: [registry])
    threads = [threading.Thread(target=connector_jars, args=("9.9.9", SAID.append)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(registry.asked) == 4


def test_a_library_that_no_way_fetches_is_tried_with_each(tmp_path: Path) -> None:
    first, second = Registry(), Registry(SQLITE.version)
    fetch_library(jar_files.driver(SQLITE), tmp_path, [first, second], SAID.append)
    assert (first.asked, second.asked) == ([str(SQLITE)], [str(SQLITE)])


def test_a_folder_that_was_filled_elsewhere_serves_without_a_registry(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = Registry("4.2.0", "4.0.0", *OTHERS, *(each.version for each in (SQLITE, jar_files.POSTGRESQL)))
    monkeypatch.setattr(jar_files, "fetchers", lambda: [every])
    monkeypatch.setattr(jar_files, "lakehouse_refusal", lambda _wanted: "none")
    files = fetch_all(tmp_path / "given", SAID.append)
    assert len(files) == 6
    asked = len(every.asked)
    assert fetch_all(tmp_path / "given", SAID.append) == files
    assert len(every.asked) == asked
    monkeypatch.setattr(jar_files, "fetchers", list)
    monkeypatch.setenv("ODRADEK_SPARK_JARS", str(tmp_path / "given"))
    assert [Path(each).name for each in connector_jars("9.9.9", SAID.append)] == sorted(each.file for each in PINNED)
    assert driver_jar(SQLITE) == str(tmp_path / "given" / SQLITE.file)
    assert not cache.exists()


def test_a_given_folder_without_a_jar_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ODRADEK_SPARK_JARS", str(tmp_path))
    said = r"\(ODRADEK_SPARK_JARS\) lacks Spark's Kafka connector .*-9.9.9.jar or spark-sql-kafka.*-4.2.0.jar\); fill"
    with pytest.raises(JarsMissing, match=said):
        connector_jars("9.9.9", SAID.append)


def test_a_machine_without_a_registry_is_told_where_the_jars_come_from(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jar_files, "fetchers", list)
    with pytest.raises(JarsMissing, match=r"neither mvn nor java .*; fill .* by `odradek pipeline jars DIR`"):
        connector_jars("9.9.9", SAID.append)
