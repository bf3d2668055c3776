"""Suites: which tests a command runs (`--suite`), and in which order.

`make test` runs the suite `test`. A test with one of the markers below is left out of it and runs in the suite of that
name only: `make more`, which continuous integration runs too, `make oracle`, `make conformance`, `make soak`,
`make lakehouse`, `make faults`, `make clients`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable

DEFAULT_SUITE = "test"
OTHER_SUITES = ("oracle", "conformance", "soak", "lakehouse", "faults", "clients", "more")
SUITES = (DEFAULT_SUITE, *OTHER_SUITES)
SUITES_WITHOUT_KAFKA = (DEFAULT_SUITE, "more")


def chosen_suites(option: str) -> list[str]:
    """The suites in a comma-separated list."""
    names = option.split(",")
    if unknown := [name for name in names if name not in SUITES]:
        raise pytest.UsageError(f"--suite: unknown suite {', '.join(unknown)}; choose from {', '.join(SUITES)}")
    return names


def suite_of(item: pytest.Item) -> str:
    return next((name for name in OTHER_SUITES if _is_marked(item, name)), DEFAULT_SUITE)


def _is_marked(item: pytest.Item, suite: str) -> bool:
    """`@pytest.mark.more(but="inner")` leaves one of the variants of a test, by its id, in `make test`."""
    marker = item.get_closest_marker(suite)
    return marker is not None and not ("but" in marker.kwargs and item.name.endswith(f"[{marker.kwargs['but']}]"))


def refuse_apache_kafka(items: Iterable[pytest.Item]) -> None:
    """`make test` and `make more` run without Apache Kafka's broker, which takes 20 s of processor time."""
    for item in items:
        if suite_of(item) in SUITES_WITHOUT_KAFKA and "apache_kafka" in getattr(item, "fixturenames", ()):
            raise pytest.UsageError(f"{item.nodeid} needs Apache Kafka: give it the marker oracle, or use Odradek")


def needs_spark(item: pytest.Item) -> bool:
    return item.get_closest_marker("spark") is not None


def start_order(item: pytest.Item) -> tuple[bool, float]:
    """Tests with Spark come first, then those with the longest time limits, so that the last ones are short."""
    marker = item.get_closest_marker("timeout")
    return not needs_spark(item), -float(marker.args[0]) if marker is not None else 0.0
