"""Every processor second is charged to the file of the test that caused it, also those of processes left behind."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BURN = "import time\nwhile time.process_time() < 0.5: pass\n"
FILES = {
    "conftest.py": """
from tests.slow_files import ProcessorTimes, write_report

pytest_plugins = ["tests.parallel"]

def pytest_configure(config):
    config.times = ProcessorTimes()
    config.pluginmanager.register(config.times)

def pytest_terminal_summary(terminalreporter, config):
    write_report(terminalreporter, config.times, 10)
""",
    "burn.py": BURN,
    "test_child.py": """
import subprocess, sys

def test_waits_for_it():
    subprocess.run([sys.executable, "burn.py"], check=True)
""",
    "leave.py": """
import subprocess, sys, time

print(subprocess.Popen([sys.executable, "burn.py"]).pid)
time.sleep(0.3)  # a measured time: at the next look at all processes, its parent is known
""",
    "test_orphan.py": """
import pathlib, subprocess, sys, time

def test_orphan():
    # It ends after its parent, as a JVM does, and nobody here can wait for it.
    number = subprocess.run([sys.executable, "leave.py"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    while pathlib.Path("/proc", number).exists():
        time.sleep(0.01)  # a poll's pause
""",
    "test_idle.py": "def test_idle(): pass",
}


@pytest.mark.parametrize("workers", ["0", "1"])
def test_seconds_are_charged_to_the_file_that_caused_them(tmp_path: Path, workers: str) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    command = [sys.executable, "-m", "pytest", "-c", str(ROOT / "pyproject.toml"), "-p", "no:randomly", "-n", workers]
    command += [f"--rootdir={tmp_path}", str(tmp_path)]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    cells = (line.split("|") for line in ran.stdout.splitlines() if line.startswith("| "))
    seconds = {row[1].strip(): float(row[2]) for row in cells}
    assert seconds["test_child.py"] >= 0.4
    assert seconds["test_orphan.py"] >= 0.4
    assert seconds["test_idle.py"] < 0.3
