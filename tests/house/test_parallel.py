"""Tests run in forks (`-n`): their results, output, warnings and crashes are reported as without them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.house.test_suites import fake_item
from tests.parallel import Groups, group_of
from tests.waiting import eventually

ROOT = Path(__file__).parents[2]
FILES = {
    "conftest.py": """
import os, pathlib, time
import pytest

pytest_plugins = ["tests.parallel"]

def note(name):
    with open("pids", "a") as pids:
        print(os.getpid(), name, file=pids)

@pytest.fixture(scope="session")
def session_note():
    note("set up")
    yield
    note("torn down")

@pytest.fixture(autouse=True)
def each(request, session_note):
    note(request.node.nodeid)
""",
    "test_first.py": """
import os, sys, warnings
import pytest

def test_passes(): pass

@pytest.mark.filterwarnings("default")
def test_warns(): warnings.warn("a careful word")

def test_fails():
    print("printed", "before")
    assert [1, 2] == [1, 3]
""",
    "test_second.py": """
import os

def test_passes(): pass
def test_crashes(): os._exit(3)
def test_after(): pass
""",
    "test_third.py": "def test_passes(): pass",
}


def run(directory: Path, files: dict[str, str], *options: str) -> subprocess.Popen[str]:
    for name, text in files.items():
        (directory / name).write_text(text)
    command = [sys.executable, "-m", "pytest", "-c", str(ROOT / "pyproject.toml"), "-p", "no:randomly"]
    command += [f"--rootdir={directory}", *options, str(directory)]
    return subprocess.Popen(command, cwd=directory, stdout=subprocess.PIPE, text=True, start_new_session=True)


def notes(directory: Path) -> list[list[str]]:
    return [line.split(maxsplit=1) for line in (directory / "pids").read_text().splitlines()]


def test_a_crash_fails_its_test_alone(tmp_path: Path) -> None:
    with run(tmp_path, FILES, "-v", "-n", "2", "--junitxml=results.xml") as process:
        output, _ = process.communicate()
    assert process.returncode == 1
    assert sorted(re.findall(r"^(test_\S+) (PASSED|FAILED)", output, re.MULTILINE)) == [
        ("test_first.py::test_fails", "FAILED"),
        ("test_first.py::test_passes", "PASSED"),
        ("test_first.py::test_warns", "PASSED"),
        ("test_second.py::test_after", "PASSED"),
        ("test_second.py::test_crashes", "FAILED"),
        ("test_second.py::test_passes", "PASSED"),
        ("test_third.py::test_passes", "PASSED"),
    ]
    for text in (
        "printed before",
        "\nits worker ended with exit code 3",
        "a careful word\n",
        "2 failed, 5 passed, 1 warn",
    ):
        assert output.count(text) == 1, text
    cases = ElementTree.parse(tmp_path / "results.xml").findall(".//testcase")
    assert sorted(len(case) for case in cases) == [0, 0, 0, 0, 0, 1, 1]


def test_a_group_has_one_worker_and_a_worker_one_session(tmp_path: Path) -> None:
    files = FILES | {f"test_more{number}.py": FILES["test_third.py"] for number in range(4)}
    del files["test_second.py"]
    with run(tmp_path, files, "-n", "2") as process:
        process.communicate()
    found = notes(tmp_path)
    assert len({pid for pid, name in found if name.startswith("test_first.py")}) == 1
    for pid in {pid for pid, _ in found}:
        own = [name for noted_by, name in found if noted_by == pid]
        assert [own[0], own[-1]] == ["set up", "torn down"]
        assert "set up" not in own[1:]


def test_a_failed_end_of_the_session_is_an_error(tmp_path: Path) -> None:
    conftest = FILES["conftest.py"].replace('note("torn down")', 'raise OSError("unclean")')
    with run(tmp_path, {"conftest.py": conftest, "test_third.py": FILES["test_third.py"]}, "-n", "1") as process:
        output, _ = process.communicate()
    assert process.returncode == 1
    assert "OSError: unclean" in output
    assert "1 passed, 1 error" in output


def test_ctrl_c_ends_tests_and_the_fixtures_of_their_sessions(tmp_path: Path) -> None:
    waits = "import time\ndef test_waits():\n    while True: time.sleep(0.01)  # a poll's pause"
    with run(tmp_path, {"conftest.py": FILES["conftest.py"], "test_waits.py": waits}, "-n", "1") as process:
        pids = tmp_path / "pids"
        eventually(lambda: pids.exists() and "test_waits" in pids.read_text())
        os.killpg(process.pid, signal.SIGINT)
        output, _ = process.communicate()
    assert process.returncode == pytest.ExitCode.INTERRUPTED
    assert "KeyboardInterrupt" in output
    assert notes(tmp_path)[-1][1] == "torn down"


def test_a_failure_may_end_the_run(tmp_path: Path) -> None:
    with run(tmp_path, FILES | {"test_first.py": "def test_fails(): assert False"}, "-n", "1", "-x") as process:
        output, _ = process.communicate()
    assert process.returncode == 1
    assert "stopping after 1 failures" in output
    assert [name for _, name in notes(tmp_path)][:2] == ["set up", "test_first.py::test_fails"]
    assert "1 failed in" in output


def test_one_worker_has_the_session_of_spark_and_one_its_other_processes() -> None:
    kinds = ["spark-session"] * 2 + ["spark-processes"] * 2 + ["tests"] * 2
    groups = Groups({f"{kind}/{number}": [number] for number, kind in enumerate(kinds)})
    taken = [groups.take(worker)[1] for worker in "abcabc"]
    assert taken == [[0], [2], [4], [1], [3], [5]]
    assert groups.take("a") == ("", [])


def test_another_worker_may_have_the_session_of_spark_when_the_first_has_crashed() -> None:
    groups = Groups({"spark-session/1": [1, 2, 3], "spark-session/2": [4]})
    assert groups.take("a") == ("spark-session/1", [1, 2, 3])
    assert groups.take("b") == ("", [])
    groups.give_back("a", "spark-session/1", [3])
    assert groups.take("b") == ("spark-session/1", [3])
    assert groups.take("c") == ("", [])


def test_files_with_spark_share_sessions_and_a_worker_for_other_processes() -> None:
    assert group_of(fake_item("tests/a.py::one", "spark", spark=())) == "spark-session/tests/a.py"
    assert group_of(fake_item("tests/cli/test_sql.py::one", spark=())) == "spark-processes/tests/cli/test_sql.py"


def test_tests_that_wait_are_spread_and_others_stay_with_their_file() -> None:
    waiting = "tests/groups/test_each_client.py::one"
    assert group_of(fake_item(waiting)) == waiting
    assert group_of(fake_item("tests/log/test_segment.py::one")) == "tests/log/test_segment.py"
