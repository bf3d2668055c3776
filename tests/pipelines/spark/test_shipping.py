"""The modules that are sent to Spark's workers, and the driver's address."""

from __future__ import annotations

import sys
import zipfile
from typing import TYPE_CHECKING

import pytest

from odradek.pipelines.definition.column_types import Primitive
from odradek.pipelines.definition.model import Function, Pipeline
from odradek.pipelines.definition.places import Place
from odradek.pipelines.definition.references import PythonReference
from odradek.pipelines.spark.sessions.session import own_address, worker_python
from odradek.pipelines.spark.sessions.user_code import module_folders, modules_in, zipped

if TYPE_CHECKING:
    from pathlib import Path


def test_modules_and_whole_packages_are_sent(tmp_path: Path) -> None:
    for name in ("rules.py", "pumps/__init__.py", "pumps/deep/limits.py", "data/readings.py", "pumps/notes.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    archive = zipped(tmp_path / "modules.zip", modules_in(tmp_path), tmp_path)
    assert sorted(zipfile.ZipFile(archive).namelist()) == ["pumps/__init__.py", "pumps/deep/limits.py", "rules.py"]


def test_folders_of_included_files_are_sent_too(tmp_path: Path) -> None:
    function = PythonReference("rules", "f", Place(f"{tmp_path}/more/functions.yml", 1, 1))
    functions = (
        Function("f", function, Primitive("INT")),
        Function("g", PythonReference("rules", "g"), Primitive("INT")),
    )
    pipeline = Pipeline("p", functions=functions, place=Place(f"{tmp_path}/p.yml", 1, 1))
    assert module_folders(pipeline) == [tmp_path, tmp_path / "more"]


@pytest.mark.parametrize(
    ("master", "address"),
    [
        ("local[*]", "127.0.0.1"),
        ("spark://127.0.0.1:7077", "127.0.0.1"),
        ("spark://127.0.0.1:1,127.0.0.1:2", "127.0.0.1"),
        ("spark://[::1]:7077", None),
        ("yarn", None),
    ],
)
def test_the_driver_is_found_where_it_sees_the_master(master: str, address: str | None) -> None:
    assert own_address(master) == address


def test_workers_of_a_cluster_may_have_another_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    named = {"spark.pyspark.python": "python3.11"}
    assert worker_python("spark://a:1", {}) == sys.executable
    assert worker_python("spark://a:1", named) == "python3.11"
    assert worker_python("local[2]", named) == sys.executable
    monkeypatch.setenv("PYSPARK_PYTHON", "python3")
    assert worker_python("yarn", {}) == "python3"
