"""`odradek consume --group`: a member of a consumer group, which commits what it has written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from odradek.testing import broker
from tests.cli.completion.test_command import complete

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Ran, Run


@pytest.fixture
def group(new_name: Callable[[], str]) -> str:
    return new_name()


@pytest.fixture
def numbered(odradek: Run, topic: str) -> str:
    """Ten records in partition 0 of two."""
    lines = "".join(f"{number}\n" for number in range(10))
    assert odradek("produce", topic, "-p", "0", stdin=lines).code == 0
    return topic


def committed(odradek: Run, group: str) -> dict[int, int | None]:
    rows = odradek("group", "describe", group, "--format", "json").row["partitions"]
    return {row["partition"]: row["committed_offset"] for row in rows}


def test_a_group_goes_on_where_it_stopped(odradek: Run, numbered: str, group: str) -> None:
    first = odradek("consume", numbered, "--group", group, "--from-beginning", "-n", "4")
    assert (first.code, first.output.split()) == (0, ["0", "1", "2", "3"])
    assert committed(odradek, group)[0] == 4
    second = odradek("consume", numbered, "--group", group, "--until-end")
    assert (second.code, second.output.split()) == (0, ["4", "5", "6", "7", "8", "9"])
    third = odradek("consume", numbered, "--group", group, "-o", "earliest", "--until-end")
    assert (third.code, third.output) == (0, "")


def test_until_end_reads_a_new_group_from_the_beginning(odradek: Run, numbered: str, group: str) -> None:
    assert odradek("consume", numbered, "--group", group, "--until-end").output.split() == [*map(str, range(10))]


def test_latest_skips_what_is_there(odradek: Run, numbered: str, group: str) -> None:
    ran = odradek("consume", numbered, "--group", group, "-o", "latest", "--until-end")
    assert (ran.code, ran.output) == (0, "")


def test_the_timeout_counts_from_the_assignment(offline: Run) -> None:
    """The group takes 3 s to assign partitions, and the records arrive after that."""
    with broker({"group.initial.rebalance.delay.ms": 3000}) as running:

        def odradek(*arguments: str) -> Ran:
            return offline(*arguments, ODRADEK_BOOTSTRAP_SERVER=running.bootstrap_servers)

        assert odradek("produce", "numbers", "-v", "one").code == 0
        ran = odradek("consume", "numbers", "-g", "readers", "--from-beginning", "--timeout", "2s")
    assert (ran.code, ran.output) == (0, "one\n")
    assert "group readers assigned partition 0 of numbers" in ran.errors


@pytest.mark.parametrize("option", [("-p", "0"), ("-o", "3"), ("-o", "-3"), ("--last", "1"), ("--from-time", "-1h")])
def test_a_position_of_its_own_is_wrong_usage(odradek: Run, topic: str, group: str, option: tuple[str, ...]) -> None:
    ran = odradek("consume", topic, "--group", group, *option)
    assert (ran.code, ran.output) == (2, "")
    assert "--group" in ran.errors


def test_a_topic_that_does_not_exist_is_a_failure(odradek: Run, new_name: Callable[[], str], group: str) -> None:
    ran = odradek("consume", new_name(), "--group", group)
    assert ran.code == 1
    assert "there is no such topic" in ran.errors


def test_group_names_are_completed(odradek: Run, numbered: str, group: str) -> None:
    assert odradek("consume", numbered, "--group", group, "--until-end").code == 0
    for command in ("group describe", "group delete", "group reset", f"consume {numbered} --group"):
        assert complete(odradek, f"odradek {command} {group[:-2]}") == [group]
