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
SPARK_GROUPS = 2  # a group has one Spark session: a JVM of 1 GiB that takes seconds to start


def suite_of(item: pytest.Item) -> str:
    return next((name for name in OTHER_SUITES if item.get_closest_marker(name) is not None), DEFAULT_SUITE)


def longest_s(item: pytest.Item) -> float:
    """The time limit of a test that has one of its own; 0 otherwise."""
    marker = item.get_closest_marker("timeout")
    return float(marker.args[0]) if marker is not None else 0.0


def needs_spark(item: pytest.Item) -> bool:
    return item.get_closest_marker("spark") is not None


def start_order(item: pytest.Item) -> tuple[bool, float]:
    """Tests with Spark come first, then those with the longest limits, so that no worker gets a long one at the end."""
    return not needs_spark(item), -longest_s(item)


def assign_groups(items: Iterable[pytest.Item]) -> None:
    """One worker runs the tests of a file, which share its fixtures; files with Spark share few warm sessions.

    A test that is marked `alone` has fixtures of its own and takes long: any worker may take it.
    """
    spark_files: dict[str, int] = {}
    for item in items:
        if item.get_closest_marker("alone") is not None:
            continue
        file = item.nodeid.partition("::")[0]
        if needs_spark(item):
            number = spark_files.setdefault(file, len(spark_files) % SPARK_GROUPS)
            group = f"spark-{number}"
        else:
            group = file.replace("/", ".").removesuffix(".py")
        item.add_marker(pytest.mark.xdist_group(group))
