from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest

from odradek.pipelines.spark.sessions import spark_home
from odradek.pipelines.spark.sessions.spark_home import PACKAGES, VARIABLE, quick_spark_home

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, of a user who has not set SPARK_HOME."""
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def home_of(master: str, distribution: Path = PACKAGES["pyspark"]) -> str | None:
    with quick_spark_home(master, distribution):
        return os.environ.get(VARIABLE)


def test_workers_import_the_installed_packages_and_not_zip_files(cache: Path) -> None:
    with quick_spark_home("local[2]"):
        home = os.environ[VARIABLE]
        assert home.startswith(str(cache))
        assert os.access(f"{home}/bin/spark-submit", os.X_OK)
        assert os.path.samefile(f"{home}/jars", PACKAGES["pyspark"] / "jars")
        (py4j,) = (each.name for each in (PACKAGES["pyspark"] / "python" / "lib").glob("py4j-*.zip"))
        assert os.path.samefile(f"{home}/python/lib/pyspark.zip/pyspark", PACKAGES["pyspark"])
        assert os.path.samefile(f"{home}/python/lib/{py4j}/py4j", PACKAGES["py4j"])
    assert VARIABLE not in os.environ


def test_the_home_is_made_once(cache: Path) -> None:
    first = home_of("local[*]")
    assert home_of("local") == first
    assert len(list((cache / "odradek" / "spark").iterdir())) == 1


def test_the_home_of_a_removed_environment_is_removed(cache: Path, tmp_path: Path) -> None:
    removed, kept = tmp_path / "removed" / "pyspark", tmp_path / "kept" / "pyspark"
    for each in (removed, kept):
        (each / "bin").mkdir(parents=True)
        home_of("local[2]", each)
    shutil.rmtree(removed)
    home = home_of("local[2]")
    assert home is not None
    homes = {os.readlink(each / "bin") for each in (cache / "odradek" / "spark").iterdir()}
    assert homes == {str(kept / "bin"), os.readlink(f"{home}/bin")}


def test_a_home_of_the_user_stays(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "/opt/spark")
    assert home_of("local[2]") == "/opt/spark"
    assert os.environ[VARIABLE] == "/opt/spark"
    assert not cache.exists()


@pytest.mark.parametrize("master", ["spark://somewhere:7077", "yarn", "k8s://https://somewhere"])
def test_the_zip_files_are_for_executors_elsewhere(cache: Path, master: str) -> None:
    assert home_of(master) is None


def test_a_distribution_beside_pyspark_stays(cache: Path, tmp_path: Path) -> None:
    (tmp_path / "pyspark" / spark_home.OTHER_DISTRIBUTION).mkdir(parents=True)
    assert home_of("local[2]", tmp_path / "pyspark") is None


def test_spark_starts_where_the_cache_cannot_be_written(cache: Path) -> None:
    cache.write_text("a file, which cannot have folders")
    assert home_of("local[2]") is None
