"""The report of the slowest files adds up the phases of their tests."""

from types import SimpleNamespace
from typing import Any

from tests.slow_files import slowest_files


def report(nodeid: str, duration: float) -> Any:
    return SimpleNamespace(nodeid=nodeid, duration=duration)


def test_phases_and_tests_of_a_file_are_added_up() -> None:
    reports = [report("a.py::one", 1.0), report("a.py::one", 0.5), report("a.py::two", 1.0), report("b.py::one", 4.0)]
    assert slowest_files([*reports, report("c.py::one", 0.1)], 2) == [("b.py", 4.0, 1), ("a.py", 2.5, 2)]
