"""The report of the slowest files adds up the phases of their tests."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.slow_files import FileTimes, dearest_files

ROOT = Path(__file__).parents[2]
BUSY_TEST = """
import subprocess, sys

BURN = "import time\\nwhile time.process_time() < 0.5: pass\\nprint(flush=True)"
LAST = BURN + "\\ninput()"

def test_busy():
    subprocess.run([sys.executable, "-c", BURN], check=True)

def test_leaves_a_process():
    started = subprocess.Popen([sys.executable, "-c", LAST], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    started.stdout.readline()
    global left
    left = started

def test_ends_the_process():
    left.communicate(b"end")

def test_idle():
    pass
"""
CONFTEST = """
from tests.slow_files import ProcessorTimes, dearest_files

def pytest_configure(config):
    config.pluginmanager.register(ProcessorTimes())

def pytest_terminal_summary(terminalreporter):
    for report in terminalreporter.stats["passed"]:
        (file,) = dearest_files([report])
        terminalreporter.write_line(f"{report.nodeid} {file.processor_seconds:.3f}")
"""


def report(nodeid: str, seconds: float, processor_seconds: float = 0.0) -> Any:
    properties = [("other", "x"), ("processor_seconds", processor_seconds)]
    return SimpleNamespace(nodeid=nodeid, duration=seconds, user_properties=properties)


def test_phases_and_tests_of_a_file_are_added_up() -> None:
    reports = [report("a.py::one", 1.0, 0.5), report("a.py::one", 0.5, 0.25), report("a.py::two", 1.0)]
    reports += [report("b.py::one", 4.0)]
    assert dearest_files(reports) == [
        FileTimes("a.py", 2.5, 0.75, {"a.py::one", "a.py::two"}),
        FileTimes("b.py", 4.0, 0.0, {"b.py::one"}),
    ]


def test_processor_seconds_are_those_of_the_test_and_of_the_processes_that_it_started(
    tmp_path: Path,
) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_it.py").write_text(BUSY_TEST)
    command = [sys.executable, "-m", "pytest", "-p", "no:randomly", "-n", "1", f"--rootdir={tmp_path}"]
    environment = os.environ | {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    lines = [line.split() for line in ran.stdout.splitlines() if line.startswith("test_it.py::")]
    seconds = {nodeid.partition("::")[2]: float(value) for nodeid, value in (line[:2] for line in lines)}
    assert seconds["test_busy"] >= 0.4
    assert seconds["test_leaves_a_process"] >= 0.4
    assert seconds["test_ends_the_process"] < 0.3
    assert seconds["test_idle"] < 0.3
