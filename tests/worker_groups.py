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

SPARK_SESSIONS = 2  # a session is a JVM of about 1 GiB that takes seconds to start
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
    """Gives each worker whole groups, in the order of their first tests."""

    def __init__(self, config: pytest.Config, log: Any, groups_file: Path) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False  # not the groups with the most tests first
        self._groups_file = groups_file
        self._groups: dict[str, str] = {}

    def schedule(self) -> None:
        if not self._groups:
            self._groups = json.loads(self._groups_file.read_text())
        super().schedule()

    def _split_scope(self, nodeid: str) -> str:
        return self._groups[nodeid]


def write_groups(items: Iterable[pytest.Item], groups_file: Path) -> None:
    """All workers collect the same tests and write the same file."""
    spark_files: dict[str, int] = {}
    groups = {item.nodeid: group_of(item, spark_files) for item in items}
    own = groups_file.with_suffix(f".{os.getpid()}")
    own.write_text(json.dumps(groups))
    own.rename(groups_file)


def group_of(item: pytest.Item, spark_files: dict[str, int]) -> str:
    """The group of a test: its own id if any worker may run it beside the others of its file.

    `spark_files` numbers the files that share a Spark session; a group starts one session, or at most one process with
    a session of its own at a time.
    """
    file = item.nodeid.partition("::")[0]
    if needs_spark(item):
        if "spark" not in getattr(item, "fixturenames", ()):
            return "spark-processes"
        return f"spark-{spark_files.setdefault(file, len(spark_files)) % SPARK_SESSIONS}"
    if file.startswith(WAITING_FOLDERS) and not shares_fixtures(item):
        return item.nodeid
    return file


def shares_fixtures(item: pytest.Item) -> bool:
    """Whether the test uses a fixture of its module or class, which another worker would make a second time."""
    definitions = item._fixtureinfo.name2fixturedefs if isinstance(item, pytest.Function) else {}
    return any(each.scope in ("class", "module") for found in definitions.values() for each in found)
