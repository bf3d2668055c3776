"""Import paths lead to the pipeline's own modules; workers get the code that they lack."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from pyspark import cloudpickle

from odradek.pipelines.definition.operations import PythonReference
from odradek.pipelines.spark.sessions.failures import PipelineError
from odradek.pipelines.spark.sessions.session import own_address, worker_python
from odradek.pipelines.spark.sessions.user_code import load_reference, modules_in, zipped
from odradek.pipelines.trial.running import forget_modules

PATH = PythonReference("rules_of_their_own", "answer")


def folder(tmp_path: Path, name: str, answer: int) -> str:
    made = tmp_path / name
    made.mkdir()
    (made / "numbers_of_their_own.py").write_text(f"NUMBER = {answer}\n")
    (made / "rules_of_their_own.py").write_text(
        "from numbers_of_their_own import NUMBER\n\n\ndef answer():\n    return NUMBER\n"
    )
    return str(made)


def test_modules_of_the_same_name_are_reported_apart(tmp_path: Path) -> None:
    first, second = folder(tmp_path, "a", 1), folder(tmp_path, "b", 2)
    one, two = load_reference(PATH, first), load_reference(PATH, second)
    assert (one(), two()) == (1, 2)
    assert load_reference(PATH, first) is one
    dumps: Any = cloudpickle.dumps
    assert [cloudpickle.loads(dumps(each))() for each in (one, two)] == [1, 2]


def test_a_module_that_was_unloaded_is_imported_again(tmp_path: Path) -> None:
    """As for the second file of tests in a folder."""
    own = folder(tmp_path, "a", 1)
    assert load_reference(PATH, own)() == 1
    forget_modules(own)
    assert load_reference(PATH, own)() == 1


def test_modules_of_a_relative_folder_are_loaded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As for `odradek pipeline run pipeline.yml`: a module that two others share keeps its state."""
    own = folder(tmp_path, "a", 1)
    Path(own, "more_rules_of_their_own.py").write_text("import numbers_of_their_own\n")
    monkeypatch.chdir(own)
    rules, more = PATH, PythonReference("more_rules_of_their_own", "numbers_of_their_own")
    load_reference(rules, ".")
    shared = sys.modules["numbers_of_their_own"]
    assert load_reference(more, ".") is shared


def test_a_relative_folder_is_that_of_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, answer in {"a": 1, "b": 2}.items():
        monkeypatch.chdir(folder(tmp_path, name, answer))
        assert load_reference(PATH, ".")() == answer


def test_modules_that_are_links_are_loaded_once(tmp_path: Path) -> None:
    """As in a folder that Kubernetes mounts."""
    stored = folder(tmp_path, "stored", 1)
    Path(stored, "more_rules_of_their_own.py").write_text("import numbers_of_their_own\n")
    own = tmp_path / "own"
    own.mkdir()
    for each in Path(stored).glob("*.py"):
        (own / each.name).symlink_to(each)
    load_reference(PATH, str(own))
    shared = sys.modules["numbers_of_their_own"]
    assert load_reference(PythonReference("more_rules_of_their_own", "numbers_of_their_own"), str(own)) is shared


def test_what_is_installed_stays_what_it_is(tmp_path: Path) -> None:
    assert load_reference(PythonReference("json", "dumps"), str(tmp_path)).__module__ == "json"


def test_modules_beside_an_installed_definition_are_sent_with_the_task(tmp_path: Path) -> None:
    """As in an example of the package: its folder is below site-packages, and workers cannot import from it."""
    (tmp_path / "site-packages").mkdir()
    beside = folder(tmp_path, "site-packages/installed", 1)
    Path(beside, "rules_of_their_own.py").rename(Path(beside, "installed_rules.py"))
    found = load_reference(PythonReference("installed_rules", "answer"), beside)
    dumps: Any = cloudpickle.dumps
    assert b"NUMBER" in dumps(found)


def test_installed_modules_are_imported_by_the_workers(tmp_path: Path) -> None:
    packages = folder(tmp_path, "site-packages", 1)
    Path(packages, "rules_of_their_own.py").rename(Path(packages, "really_installed_rules.py"))
    found = load_reference(PythonReference("really_installed_rules", "answer"), packages)
    dumps: Any = cloudpickle.dumps
    assert b"NUMBER" not in dumps(found)
    forget_modules(packages)  # other tests have modules of these names, and installed ones are not unloaded for them


def test_a_path_that_leads_nowhere_is_reported(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match=r"nowhere_at_all:f cannot be imported"):
        load_reference(PythonReference("nowhere_at_all", "f"), str(tmp_path))
    with pytest.raises(PipelineError, match="module json does not define nonsense"):
        load_reference(PythonReference("json", "nonsense"), str(tmp_path))


def test_modules_and_whole_packages_are_sent(tmp_path: Path) -> None:
    for name in ("rules.py", "pumps/__init__.py", "pumps/deep/limits.py", "data/readings.py", "pumps/notes.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    archive = zipped(tmp_path / "modules.zip", modules_in(tmp_path), tmp_path)
    assert sorted(zipfile.ZipFile(archive).namelist()) == ["pumps/__init__.py", "pumps/deep/limits.py", "rules.py"]


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
