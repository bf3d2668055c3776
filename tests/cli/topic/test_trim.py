"""`odradek topic trim`: the oldest records go, the offsets of the others stay."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.commands import Run


@pytest.fixture
def filled(odradek: Run, new_name: Callable[[], str]) -> str:
    """Ten records, a second apart, in one partition."""
    name = new_name()
    assert odradek("topic", "create", name, "--partitions", "1").code == 0
    lines = "".join(f"{1_600_000_000_000 + number * 1000} {number}\n" for number in range(10))
    assert odradek("produce", name, "-f", "%T %v", stdin=lines).code == 0
    return name


def left(odradek: Run, topic: str) -> list[str]:
    return odradek("consume", topic, "--from-beginning", "--until-end").output.split()


@pytest.mark.parametrize(
    ("way", "first"),
    [
        (("--before-offset", "4"), 4),
        (("--before-offset", "10"), 10),
        (("--before-time", "1600000006500"), 7),
        (("--before-time", "now"), 10),
        (("--keep-last", "3"), 7),
        (("--keep-last", "100"), 0),
        (("--all",), 10),
    ],
)
def test_records_before_it_are_deleted(odradek: Run, filled: str, way: tuple[str, ...], first: int) -> None:
    ran = odradek("topic", "trim", filled, *way, "--yes", "--format", "json")
    assert ran.code == 0, ran.errors
    assert ran.row == {
        "topic": filled, "partition": 0, "earliest_offset_before": 0, "earliest_offset": first, "latest_offset": 10,
        "deleted_offsets": first,
    }  # fmt: skip
    assert left(odradek, filled) == [str(number) for number in range(first, 10)]


def test_an_offset_past_the_end_is_a_failure_and_deletes_nothing(odradek: Run, filled: str) -> None:
    ran = odradek("topic", "trim", filled, "--before-offset", "11", "--yes")
    assert ran.code == 1
    assert f"topic {filled}, partition 0 ends at offset 10, before 11; give at most 10, or other" in ran.errors
    assert len(left(odradek, filled)) == 10


def test_an_offset_past_the_end_of_several_partitions_names_the_least_end(odradek: Run, topic: str) -> None:
    assert odradek("produce", topic, "-p", "0", stdin="one\ntwo\n").code == 0
    assert odradek("produce", topic, "-p", "1", stdin="one\n").code == 0
    ran = odradek("topic", "trim", topic, "--before-offset", "3", "--yes")
    assert ran.errors.endswith(
        f"topic {topic}, partition 0 ends at offset 2, before 3; give at most 1, or other partitions with --partition\n"
    )


def test_text_shows_what_was_deleted(odradek: Run, filled: str) -> None:
    ran = odradek("topic", "trim", filled, "--before-offset", "4", "--yes")
    assert ran.output.splitlines()[-1] == f"deleted at most 4 records of topic {filled}"
    again = odradek("topic", "trim", filled, "--before-offset", "2", "--yes")
    assert again.output.splitlines()[-1] == "nothing to delete"


@pytest.mark.parametrize("ways", [(), ("--all", "--keep-last", "1"), ("--before-offset", "1", "--before-time", "now")])
def test_one_way_must_be_given(offline: Run, ways: tuple[str, ...]) -> None:
    ran = offline("topic", "trim", "a", *ways)
    assert ran.code == 2
    assert "give one of --before-offset, --before-time, --keep-last, --all" in ran.errors


def test_without_a_terminal_yes_is_required(odradek: Run, filled: str) -> None:
    ran = odradek("topic", "trim", filled, "--all")
    assert ran.code == 2
    assert "--yes" in ran.errors
    assert len(left(odradek, filled)) == 10


def test_a_partition_that_does_not_exist_is_named(odradek: Run, filled: str) -> None:
    ran = odradek("topic", "trim", filled, "--all", "-p", "3", "--yes")
    assert ran.code == 1
    assert f"topic {filled} has no partition 3; it has partition 0 only" in ran.errors
