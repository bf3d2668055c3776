import os
import shutil
import zipfile
from pathlib import Path

import pytest

from odradek.pipelines.trial.parsing import read_case_file
from tests.jvm import spark_archive
from tests.jvm.spark_rehearsal import write_files


@pytest.fixture
def distribution(tmp_path: Path) -> Path:
    for name in ("one/pyspark/jars/a.jar", "one/pyspark/bin/spark-submit"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "one/pyspark/python/lib").mkdir(parents=True)
    with zipfile.ZipFile(tmp_path / "one/pyspark/python/lib/py4j.zip", "w") as packed:
        packed.writestr("py4j/__init__.py", "")
    return tmp_path / "one" / "pyspark"


@pytest.mark.skipif(shutil.which("java") is None, reason="needs Java on the PATH")
def test_the_same_jars_in_another_environment_have_the_same_archive(distribution: Path, tmp_path: Path) -> None:
    other = tmp_path / "two" / "pyspark"
    shutil.copytree(distribution, other)
    os.utime(other / "jars" / "a.jar", (1, 1))
    archives = {spark_archive.archive_directory("java", each, []) for each in (distribution, other)}
    assert len(archives) == 1


@pytest.mark.skipif(shutil.which("java") is None, reason="needs Java on the PATH")
def test_other_jars_have_another_archive(distribution: Path) -> None:
    before = spark_archive.archive_directory("java", distribution, [])
    (distribution / "jars" / "b.jar").touch()
    assert spark_archive.archive_directory("java", distribution, []) != before


def test_spark_outlives_the_environment_that_it_came_from(distribution: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    spark_archive.copy_distribution(distribution, home)
    shutil.rmtree(distribution)
    files = sorted(str(each.relative_to(home)) for each in home.rglob("*") if each.is_file())
    assert files == ["bin/spark-submit", "jars/a.jar", "python/lib/py4j.zip/py4j/__init__.py"]
    assert spark_archive.environment(tmp_path, "classes.conf")["SPARK_HOME"] == str(home)


def test_files_are_copied_where_links_are_refused(
    distribution: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_paths: object) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", refuse)
    spark_archive.copy_distribution(distribution, tmp_path / "home")
    assert (tmp_path / "home" / "jars" / "a.jar").read_text() == "one/pyspark/jars/a.jar"


def test_the_rehearsal_is_a_valid_definition(tmp_path: Path) -> None:
    """A machine that has an archive does not run it."""
    read_case_file(write_files(tmp_path / "rehearsal"), {})  # raises a list of problems
