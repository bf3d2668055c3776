"""Which tests run together: the suites (`--suite`), and the groups that one worker of pytest-xdist runs in one go.

`make test` runs the suite `test`. A test with one of the markers below is left out of it and runs in the suite of that
name only: `make oracle`, `make conformance`, `make soak`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable

DEFAULT_SUITE = "test"
OTHER_SUITES = ("oracle", "conformance", "soak")
SUITES = (DEFAULT_SUITE, *OTHER_SUITES)
SPARK_SESSIONS = 2  # a session is a JVM of about 1 GiB that takes seconds to start
# Tests in these folders start processes and wait for them: the tests of a file run side by side, too.
WAITING_FOLDERS = (
    "tests/bench/",
    "tests/cli/",
    "tests/clients/",
    "tests/crash/",
    "tests/groups/",
    "tests/server/",
    "tests/testing/",
)


def chosen_suites(option: str) -> list[str]:
    """The suites in a comma-separated list."""
    names = option.split(",")
    if unknown := [name for name in names if name not in SUITES]:
        raise pytest.UsageError(f"--suite: unknown suite {', '.join(unknown)}; choose from {', '.join(SUITES)}")
    return names


def suite_of(item: pytest.Item) -> str:
    return next((name for name in OTHER_SUITES if item.get_closest_marker(name) is not None), DEFAULT_SUITE)


def needs_spark(item: pytest.Item) -> bool:
    return item.get_closest_marker("spark") is not None


def start_order(item: pytest.Item) -> tuple[bool, float]:
    """Tests with Spark come first, then those with the longest time limits, so that the last ones are short."""
    marker = item.get_closest_marker("timeout")
    return not needs_spark(item), -float(marker.args[0]) if marker is not None else 0.0


def assign_groups(items: Iterable[pytest.Item]) -> None:
    spark_files: dict[str, int] = {}
    for item in items:
        if (group := group_of(item, spark_files)) is not None:
            item.add_marker(pytest.mark.xdist_group(group))


def group_of(item: pytest.Item, spark_files: dict[str, int]) -> str | None:
    """The group of a test; None if any worker may run it beside the others of its file.

    `spark_files` numbers the files that share a Spark session; a group starts one session, or at most one process with
    a session of its own at a time.
    """
    file = item.nodeid.partition("::")[0]
    if needs_spark(item):
        if "spark" not in getattr(item, "fixturenames", ()):
            return "spark-processes"
        return f"spark-{spark_files.setdefault(file, len(spark_files)) % SPARK_SESSIONS}"
    if file.startswith(WAITING_FOLDERS) and not shares_fixtures(item):
        return None
    return file.replace("/", ".").removesuffix(".py")


def shares_fixtures(item: pytest.Item) -> bool:
    """Whether the test uses a fixture of its module or class, which another worker would make a second time."""
    definitions = item._fixtureinfo.name2fixturedefs if isinstance(item, pytest.Function) else {}
    return any(each.scope in ("class", "module") for found in definitions.values() for each in found)
