"""`odradek group`, on a real cluster: what it shows, what it moves, what it refuses."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient

from odradek.admin.resets import split_topic

if TYPE_CHECKING:
    from pathlib import Path

    from tests.commands import Run

NewName = Callable[[], str]


@pytest.fixture
def group(odradek: Run, topic: str, bootstrap_server: str, new_name: NewName) -> str:
    """A group without members that has read 4 of 10 records in partition 0, and nothing of the other."""
    lines = "".join(f"{number}\n" for number in range(10))
    assert odradek("produce", topic, "--partition", "0", stdin=lines).code == 0
    name = new_name()
    consumer = make_consumer(bootstrap_server, name)
    consumer.commit(offsets=[confluent_kafka.TopicPartition(topic, 0, 4)], asynchronous=False)
    consumer.close()
    return name


def make_consumer(bootstrap_server: str, group: str, client_id: str = "reader") -> Any:
    return confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap_server,
            "group.id": group,
            "client.id": client_id,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }
    )


@contextmanager
def members_of(group: str, topic: str, bootstrap_server: str, held: list[int]) -> Iterator[None]:
    """As many members as `held` has numbers: how many partitions each is to end up with."""
    members = [make_consumer(bootstrap_server, group) for _ in held]
    try:
        for member in members:
            member.subscribe([topic])
        deadline = time.monotonic() + 30
        while not is_settled(group, bootstrap_server, held):
            assert time.monotonic() < deadline
            for member in members:
                member.poll(0.05)
        yield
    finally:
        for member in members:
            member.close()


def is_settled(group: str, bootstrap_server: str, held: list[int]) -> bool:
    admin = AdminClient({"bootstrap.servers": bootstrap_server, "log_level": 0})
    described = admin.describe_consumer_groups([group])[group].result()
    counts = sorted(len(member.assignment.topic_partitions) for member in described.members)
    return described.state.name == "STABLE" and counts == sorted(held)


def test_groups_are_listed_with_their_states(odradek: Run, group: str) -> None:
    assert {"group": group, "state": "Empty", "type": "classic"} in odradek("group", "list", "--format", "json").rows
    assert group in odradek("group", "list", "--state", "empty").output
    assert group not in odradek("group", "list", "--state", "Stable").output
    ran = odradek("group", "list", "--state", "Sleepy")
    assert ran.code == 2
    assert "stable" in ran.errors


def test_describe_tells_the_lag_in_records_and_in_time(odradek: Run, group: str, topic: str) -> None:
    reported = odradek("group", "describe", group, "--format", "json").row
    assert (reported["state"], reported["type"], reported["lag"], reported["members"]) == ("Empty", "classic", 6, [])
    (partition,) = reported["partitions"]
    assert partition["time_lag_ms"] >= 0
    del partition["time_lag_ms"]
    assert partition == {
        "topic": topic, "partition": 0, "committed_offset": 4, "end_offset": 10, "lag": 6, "member_id": None,
    }  # fmt: skip


def test_describe_tells_who_has_what(odradek: Run, group: str, topic: str, bootstrap_server: str) -> None:
    with members_of(group, topic, bootstrap_server, held=[2]):
        reported = odradek("group", "describe", group, "--format", "json").row
        shown = odradek("group", "describe", group)
    assert (reported["state"], reported["assignor"]) == ("Stable", "range")
    (member,) = reported["members"]
    assert (member["client_id"], len(member["assignment"])) == ("reader", 2)
    assert [each["committed_offset"] for each in reported["partitions"]] == [4, None]
    assert "lag 6" in shown.output
    assert "reader" in shown.output


def test_describe_tells_members_of_one_name_apart_and_what_the_lag_leaves_out(
    odradek: Run, group: str, topic: str, bootstrap_server: str
) -> None:
    with members_of(group, topic, bootstrap_server, held=[0, 1, 1]):
        lines = odradek("group", "describe", group, COLUMNS="80").output.splitlines()
    heading, behind, _, titles, *rows = lines
    assert heading == f"{group}  Stable · classic · 3 members · assignor range"
    assert behind.startswith("lag 6 records · ")
    assert titles.split() == ["TOPIC", "PARTITION", "COMMITTED", "END", "LAG", "TIME", "LAG", "MEMBER"]
    owners = {row.split("  ")[-1] for row in rows[:2]}
    assert rows[0].split()[:5] == [topic, "0", "4", "10", "6"]
    assert rows[1].split()[:6] == [topic, "1", "-", "0", "-", "-"]
    assert rows[2:5] == [
        "1 partition without a committed offset not counted in the lag",
        "",
        "MEMBER     HOST       PARTITIONS",
    ]
    held = {name: int(count) for name, _host, count in (row.rsplit(maxsplit=2) for row in rows[5:])}
    assert sorted(held) == ["reader #1", "reader #2", "reader #3"]
    assert {name for name, count in held.items() if count} == owners
    assert max(map(len, lines)) <= 80


def test_a_reset_shows_what_it_would_do_and_does_nothing(odradek: Run, group: str, topic: str) -> None:
    ran = odradek("group", "reset", group, "--to-earliest", "--format", "json")
    assert ran.row == {
        "group": group, "topic": topic, "partition": 0, "before": 4, "after": 0, "executed": False,
    }  # fmt: skip
    assert "--execute" in ran.errors
    assert odradek("group", "describe", group, "--format", "json").row["lag"] == 6


@pytest.mark.parametrize(
    ("way", "offset"),
    [
        (("--to-earliest",), 0),
        (("--to-latest",), 10),
        (("--to-offset", "7"), 7),
        (("--to-offset", "999"), 10),
        (("--shift", "2"), 6),
        (("--shift", "-99"), 0),
        (("--to-time", "2001-01-01T00:00"), 0),
        (("--to-time", "1900-01-01"), 0),
        (("--by-duration", "1h"), 0),
        (("--by-duration", "0s"), 10),
    ],
)
def test_a_reset_moves_the_group(odradek: Run, group: str, way: tuple[str, ...], offset: int) -> None:
    ran = odradek("group", "reset", group, *way, "--execute")
    assert ran.code == 0, ran.errors
    (partition,) = odradek("group", "describe", group, "--format", "json").row["partitions"]
    assert partition["committed_offset"] == offset


def test_a_reset_from_a_file(odradek: Run, group: str, topic: str, tmp_path: Path) -> None:
    file = tmp_path / "offsets.csv"
    file.write_text(f"# where to go on\n{topic},0,3\n{topic},1,0\n")
    assert odradek("group", "reset", group, "--from-file", str(file), "--execute").code == 0
    reported = odradek("group", "describe", group, "--format", "json").row["partitions"]
    assert [each["committed_offset"] for each in reported] == [3, 0]
    file.write_text("nonsense\n")
    assert "line 1" in odradek("group", "reset", group, "--from-file", str(file)).errors
    file.write_text(f"{topic},0,-1\n")
    assert "line 1" in odradek("group", "reset", group, "--from-file", str(file)).errors
    file.write_text("")
    assert "contains no offsets" in odradek("group", "reset", group, "--from-file", str(file)).errors


def test_a_dry_run_says_what_it_means(odradek: Run, group: str, topic: str, tmp_path: Path) -> None:
    lines = odradek("group", "reset", group, "--topic", topic, "--to-offset", "99").output.splitlines()
    assert [line.split() for line in lines[:-1]] == [
        ["TOPIC", "PARTITION", "BEFORE", "AFTER", "CHANGE"],
        [topic, "0", "4", "10", "+6"],
        [topic, "1", "-", "0", "new"],
    ]
    assert lines[-1] == "6 records to be skipped, 1 partition committed for the first time"
    assert "4 records to be read again" in odradek("group", "reset", group, "--to-earliest").output
    for more in ([], ["--execute"]):
        unchanged = odradek("group", "reset", group, "--to-offset", "4", *more)
        assert (unchanged.output.splitlines()[-1], unchanged.errors) == ("no offset changes", "")
    file = tmp_path / "offsets.csv"
    file.write_text(f"{topic},0,11\n")
    assert f"{topic}-0: 11 is after the end; using 10" in odradek("group", "reset", group, "--from-file", file).errors
    assert odradek("group", "reset", group, "--from-file", file, "--topic", topic).code == 2


def test_what_is_not_committed_is_not_shifted(odradek: Run, group: str, topic: str) -> None:
    ran = odradek("group", "reset", group, "--topic", topic, "--shift", "1", "--execute")
    assert (ran.code, ran.output) == (1, "")
    assert f"{topic}-1: no committed offset" in ran.errors


def test_a_reset_of_chosen_partitions_makes_the_group_if_need_be(odradek: Run, topic: str, new_name: NewName) -> None:
    name = new_name()
    assert "there is no group" in odradek("group", "reset", name, "--to-earliest").errors
    ran = odradek("group", "reset", name, "--topic", f"{topic}:1", "--to-latest", "--execute", "--format", "json")
    assert (ran.row["partition"], ran.row["before"], ran.row["after"]) == (1, None, 0)
    assert "no partition 7" in odradek("group", "reset", name, "--topic", f"{topic}:7", "--to-latest").errors


def test_a_reset_needs_one_way(odradek: Run, group: str) -> None:
    for ways in ((), ("--to-earliest", "--shift", "1")):
        ran = odradek("group", "reset", group, *ways)
        assert ran.code == 2
        assert "--to-earliest" in ran.errors


def test_active_members_forbid_reset_and_deletion(odradek: Run, group: str, topic: str, bootstrap_server: str) -> None:
    with members_of(group, topic, bootstrap_server, held=[2]):
        ran = odradek("group", "reset", group, "--to-earliest", "--execute")
        assert ran.code == 1
        assert "Stable with 1 active member" in ran.errors
        ran = odradek("group", "delete", group, "--yes")
        assert ran.code == 1
        assert "active members" in ran.errors


def test_delete_removes_the_group(odradek: Run, group: str, new_name: NewName) -> None:
    missing = new_name()
    ran = odradek("group", "delete", group, missing, "--yes")
    assert (ran.code, ran.output) == (1, f"deleted group {group}\n")
    assert f"group {missing}: there is no such group" in ran.errors
    assert "there is no group" in odradek("group", "describe", group).errors


@pytest.mark.parametrize("command", [("describe",), ("reset", "--to-earliest"), ("delete", "--yes")])
def test_a_mistyped_group_has_a_suggestion(odradek: Run, group: str, command: tuple[str, ...]) -> None:
    mistyped = group[:5] + group[6:]
    ran = odradek("group", *command, mistyped)
    assert ran.code == 1
    assert f"; did you mean {group}?" in ran.errors


def test_a_topic_may_have_colons() -> None:
    assert split_topic("pump") == ("pump", [])
    assert split_topic("pump:0,2") == ("pump", [0, 2])
    assert split_topic("/streams/pump:warning") == ("/streams/pump:warning", [])
    assert split_topic("/streams/pump:warning:1") == ("/streams/pump:warning", [1])
