"""Suites and groups of tests: what `--suite` selects, and which tests share a worker."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.suites import SUITES, chosen_suites, refuse_apache_kafka, start_order, suite_of
from tests.worker_groups import GroupScheduling, group_of

ROOT = Path(__file__).resolve().parents[2]
ON_BOTH_BROKERS = "tests/clients/test_topic_settings.py"


def fake_item(nodeid: str, *fixtures: str, **markers: tuple[Any, ...]) -> Any:
    def marker(name: str) -> Any:
        return SimpleNamespace(args=markers[name], kwargs={}) if name in markers else None

    return SimpleNamespace(nodeid=nodeid, name=nodeid, fixturenames=fixtures, get_closest_marker=marker)


def collected(*options: str) -> list[str]:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:randomly", *options, ON_BOTH_BROKERS]
    listing = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return [line.rpartition("[")[2].rstrip("]") for line in listing.stdout.splitlines() if "::" in line]


def test_apache_kafka_is_used_in_the_oracle_suite_only() -> None:
    assert collected() == ["odradek"]
    assert collected("--suite", "oracle") == ["apache-kafka"]
    assert collected("--suite", "test,oracle") == ["apache-kafka", "odradek"]
    assert collected("--suite", "soak") == []


def test_one_variant_of_a_test_stays_in_every_run() -> None:
    closest = {"more": SimpleNamespace(kwargs={"but": "inner"})}.get
    variants: list[Any] = [SimpleNamespace(name=f"a[{each}]", get_closest_marker=closest) for each in ("inner", "full")]
    assert [suite_of(each) for each in variants] == ["test", "more"]


def test_a_test_of_another_suite_may_not_start_apache_kafka() -> None:
    allowed = [fake_item("tests/a.py::one", "apache_kafka", oracle=()), fake_item("tests/a.py::two", "tmp_path")]
    refuse_apache_kafka(allowed)
    with pytest.raises(pytest.UsageError, match="::three needs Apache Kafka: give it the marker oracle"):
        refuse_apache_kafka([*allowed, fake_item("tests/a.py::three", "apache_kafka")])
    with pytest.raises(pytest.UsageError, match="::four needs Apache Kafka"):
        refuse_apache_kafka([*allowed, fake_item("tests/a.py::four", "apache_kafka", more=())])


def test_every_suite_has_a_command_and_continuous_integration_runs_what_every_change_needs() -> None:
    makefile = (ROOT / "Makefile").read_text()
    assert [name for name in SUITES if not re.search(rf"^{name}: ", makefile, re.MULTILINE)] == []
    assert re.findall("^make .*", (ROOT / ".ci" / "run").read_text(), re.MULTILINE) == ["make test"]


def test_unknown_suite_is_a_usage_error() -> None:
    with pytest.raises(pytest.UsageError, match="unknown suite nightly; choose from test, oracle, conformance, soak"):
        chosen_suites("test,nightly")


def test_files_with_spark_share_sessions_and_a_worker_for_other_processes() -> None:
    assert group_of(fake_item("tests/a.py::one", "spark", spark=())) == "spark-session/tests/a.py"
    assert group_of(fake_item("tests/cli/test_sql.py::one", spark=())) == "spark-processes/tests/cli/test_sql.py"


class Worker:
    """A worker of pytest-xdist that notes which tests it is given."""

    def __init__(self) -> None:
        self.given: list[int] = []
        self.shutting_down = False
        self.gateway = SimpleNamespace(id="worker")

    def send_runtest_some(self, positions: list[int]) -> None:
        self.given += positions

    def shutdown(self) -> None:
        self.shutting_down = True


def test_one_worker_has_the_session_of_spark_and_one_its_other_processes(tmp_path: Path) -> None:
    kinds = ["spark-session"] * 2 + ["spark-processes"] * 2 + ["tests"] * 2
    groups = {f"test{number}": f"{kind}/{number}" for number, kind in enumerate(kinds)}
    (tmp_path / "groups.json").write_text(json.dumps(groups))
    config: Any = SimpleNamespace(option=SimpleNamespace(loadscopereorder=True, tx=None, maxprocesses=None))
    config.getvalue = lambda name: ["popen"] * 3 if name == "tx" else None
    scheduling = GroupScheduling(config, None, tmp_path / "groups.json")
    workers = [Worker() for _ in range(3)]
    for worker in workers:
        scheduling.add_node(worker)
        scheduling.add_node_collection(worker, list(groups))
    scheduling.schedule()
    # Each worker has two groups, if it may run two.
    assert [worker.given for worker in workers] == [[0, 1], [2, 3], [4, 5]]
    assert all(worker.shutting_down for worker in workers)


def test_a_crashed_worker_leaves_only_tests_that_did_not_run(tmp_path: Path) -> None:
    names = [f"test{number}" for number in range(6)]
    (tmp_path / "groups.json").write_text(json.dumps({name: f"tests/{int(name[4:]) // 2}" for name in names}))
    config: Any = SimpleNamespace(option=SimpleNamespace(loadscopereorder=True, tx=None, maxprocesses=None))
    config.getvalue = lambda name: ["popen"] * 2 if name == "tx" else None
    scheduling = GroupScheduling(config, None, tmp_path / "groups.json")
    workers = [Worker(), Worker()]
    for worker in workers:
        scheduling.add_node(worker)
        scheduling.add_node_collection(worker, names)
    scheduling.schedule()
    assert [worker.given for worker in workers] == [[0, 1, 4, 5], [2, 3]]
    scheduling.mark_test_complete(workers[0], 0)
    scheduling.mark_test_complete(workers[0], 1)
    workers[1].shutting_down = False
    assert scheduling.remove_node(workers[0]) == "test4"
    assert workers[1].given == [2, 3, 5]


def test_tests_that_wait_are_spread_and_others_stay_with_their_file() -> None:
    waiting = "tests/groups/test_each_client.py::one"
    assert group_of(fake_item(waiting)) == waiting
    assert group_of(fake_item("tests/log/test_segment.py::one")) == "tests/log/test_segment.py"


def test_longest_tests_start_first() -> None:
    short, long = fake_item("short"), fake_item("long", timeout=(300,))
    spark = fake_item("spark", spark=())
    assert sorted([short, long, spark], key=start_order) == [spark, long, short]


def test_a_worker_runs_all_tests_of_a_group() -> None:
    files = ["tests/protocol/test_varints.py", "tests/protocol/test_framing.py"]
    command = [sys.executable, "-m", "pytest", "-v", "-n", "2", "-p", "no:randomly", *files]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    passed = [line.split() for line in done.stdout.splitlines() if " PASSED " in line]
    workers = {(next(word for word in words if "::" in word).partition("::")[0], words[0]) for words in passed}
    assert sorted(file for file, _worker in workers) == sorted(files)
