"""Groups of tests, each of which one worker of pytest-xdist runs in one go, and the scheduler that hands them out.

pytest-xdist's own groups (`--dist loadgroup`) extend the ids of tests, which has no effect in pytest 9.2. Here the
workers write the groups to a file of the run, and the controller reads it.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest
from xdist.scheduler import LoadScopeScheduling

from tests.suites import needs_spark

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

# How many workers run groups of a kind: a session of Spark is a JVM of 1 GiB that compiles the same code as another.
WORKERS_OF_KIND = {"spark-session": 1, "spark-processes": 1}
# Tests in these folders start processes and wait for them: the tests of a file run side by side, too.
WAITING_FOLDERS = (
    "tests/bench/",
    "tests/cli/",
    "tests/clients/",
    "tests/crash/",
    "tests/deploy/",
    "tests/exactly_once/",
    "tests/groups/",
    "tests/server/",
    "tests/testing/",
)


class GroupScheduling(LoadScopeScheduling):  # type: ignore[misc]  # pytest-xdist has no types
    """Gives each worker whole groups, in the order of their first tests.

    Groups with Spark go to a few workers, each of which takes the next when it has finished one.
    """

    def __init__(self, config: pytest.Config, log: Any, groups_file: Path) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False  # not the groups with the most tests first
        self._groups_file = groups_file
        self._groups: dict[str, str] = {}
        self._positions: dict[str, int] = {}
        self._workers: dict[str, set[Any]] = {kind: set() for kind in WORKERS_OF_KIND}

    def schedule(self) -> None:
        if not self._groups:
            self._groups = json.loads(self._groups_file.read_text())
            collected = next(iter(self.registered_collections.values()))  # the same for all workers
            self._positions = {nodeid: number for number, nodeid in enumerate(collected)}
        super().schedule()

    def remove_node(self, node: Any) -> str | None:
        """Hands the tests of a worker that crashed to others, without the test that ended it. Groups that it has
        completed are not handed out: a worker would wait for the end of tests that it was not given."""
        for workers in self._workers.values():
            workers.discard(node)
        work = self.assigned_work.pop(node)
        crashed: str | None = next((each for tests in work.values() for each, done in tests.items() if not done), None)
        for group, tests in work.items():
            unfinished = {each: done for each, done in tests.items() if not done and each != crashed}
            if unfinished:
                self.workqueue[group] = unfinished
        for other in self.assigned_work:
            self._reschedule(other)
        return crashed

    def _split_scope(self, nodeid: str) -> str:
        return self._groups[nodeid]

    def _assign_work_unit(self, node: Any) -> None:
        """Assigns the first group that this worker may run; one that may run none of the rest ends."""
        group = next((group for group in self.workqueue if self._may_run(node, group)), None)
        if group is None:
            node.shutdown()
            return
        if (kind := kind_of(group)) in WORKERS_OF_KIND:
            self._workers[kind].add(node)
        tests = self.workqueue.pop(group)
        self.assigned_work.setdefault(node, {})[group] = tests
        node.send_runtest_some([self._positions[nodeid] for nodeid, is_completed in tests.items() if not is_completed])

    def _may_run(self, node: Any, group: str) -> bool:
        kind = kind_of(group)
        return (
            kind not in WORKERS_OF_KIND
            or node in self._workers[kind]
            or len(self._workers[kind]) < WORKERS_OF_KIND[kind]
        )


def kind_of(group: str) -> str:
    return group.partition("/")[0]


def write_groups(items: Iterable[pytest.Item], groups_file: Path) -> None:
    """All workers collect the same tests and write the same file."""
    groups = {item.nodeid: group_of(item) for item in items}
    own = groups_file.with_suffix(f".{os.getpid()}")
    own.write_text(json.dumps(groups))
    own.rename(groups_file)


def group_of(item: pytest.Item) -> str:
    """The group of a test: its own id if any worker may run it beside the others of its file."""
    file = item.nodeid.partition("::")[0]
    if needs_spark(item):
        has_session = "spark" in getattr(item, "fixturenames", ())  # or it starts a process with a session of its own
        return f"{'spark-session' if has_session else 'spark-processes'}/{file}"
    if file.startswith(WAITING_FOLDERS) and not shares_fixtures(item):
        return item.nodeid
    return file


def shares_fixtures(item: pytest.Item) -> bool:
    """Whether the test uses a fixture of its module or class, which another worker would make a second time."""
    definitions = item._fixtureinfo.name2fixturedefs if isinstance(item, pytest.Function) else {}
    return any(each.scope in ("class", "module") for found in definitions.values() for each in found)
