"""`odradek topic`, on a real cluster: what it prints, what it changes, how it fails."""

from __future__ import annotations

import base64
import os
import subprocess
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from odradek.cli.topic import offsets_text
from tests.cli.completion.test_command import complete

if TYPE_CHECKING:
    from tests.commands import Run

NewName = Callable[[], str]


def test_create_says_what_it_made(odradek: Run, new_name: NewName) -> None:
    name = new_name()
    ran = odradek("topic", "create", name, "--partitions", "3")
    assert (ran.code, ran.output, ran.errors) == (0, f"created topic {name} with 3 partitions\n", "")


def test_several_topics_are_created(odradek: Run, new_name: NewName) -> None:
    names = [new_name() for _ in range(3)]
    ran = odradek("topic", "create", *names, "--partitions", "2")
    assert ran.output == "".join(f"created topic {name} with 2 partitions\n" for name in names)


def test_create_as_json(odradek: Run, new_name: NewName) -> None:
    name = new_name()
    ran = odradek("topic", "create", name, "-p", "1", "--format", "json")
    assert ran.row == {"topic": name, "created": True, "partitions": 1}


def test_create_leaves_numbers_to_the_broker(odradek: Run, new_name: NewName) -> None:
    name = new_name()
    ran = odradek("topic", "create", name)
    assert ran.code == 0
    assert ran.output.startswith(f"created topic {name}")


def test_create_twice_fails_and_tells_of_if_not_exists(odradek: Run, topic: str) -> None:
    ran = odradek("topic", "create", topic)
    assert (ran.code, ran.output) == (1, "")
    assert f"topic {topic} already exists" in ran.errors
    assert "--if-not-exists" in ran.errors


def test_if_not_exists_accepts_an_existing_topic(odradek: Run, topic: str) -> None:
    ran = odradek("topic", "create", topic, "--if-not-exists", "--partitions", "9")
    assert (ran.code, ran.output) == (0, f"topic {topic} already exists with 2 partitions\n")


def test_a_bad_name_is_refused_in_the_brokers_words(odradek: Run) -> None:
    ran = odradek("topic", "create", "no spaces/please")
    assert ran.code == 1
    assert ran.errors.startswith("odradek: error: topic no spaces/please: ")
    assert ran.errors.count("\n") == 1


def test_an_impossible_replication_factor_is_refused(odradek: Run, new_name: NewName) -> None:
    ran = odradek("topic", "create", new_name(), "--replication-factor", "99")
    assert ran.code == 1
    assert "INVALID_REPLICATION_FACTOR" in ran.errors


def test_list_shows_topics_with_their_partitions(odradek: Run, topic: str) -> None:
    ran = odradek("topic", "list")
    assert ran.output.splitlines()[0].split() == ["TOPIC", "PARTITIONS", "REPLICAS"]
    assert [topic, "2", "1"] in [line.split() for line in ran.output.splitlines()]


def test_list_as_json(odradek: Run, topic: str) -> None:
    rows = odradek("topic", "list", "--format", "json").rows
    assert {"topic": topic, "partitions": 2, "replication_factor": 1} in rows


def test_internal_topics_are_listed_on_demand(odradek: Run) -> None:
    usual = {row["topic"] for row in odradek("topic", "list", "--format", "json").rows}
    every = {row["topic"] for row in odradek("topic", "list", "--internal", "--format", "json").rows}
    assert usual <= every
    assert not any(name.startswith("__") for name in usual)


def test_describe_shows_partitions_and_offsets(odradek: Run, topic: str) -> None:
    assert odradek("produce", topic, "--partition", "1", "--value", "a", "--value", "b").code == 0
    ran = odradek("topic", "describe", topic)
    assert ran.code == 0
    lines = [line.split() for line in ran.output.splitlines()]
    assert lines[0][:3] == [topic, "2", "partitions"]
    assert ran.output.splitlines()[0].endswith(" · 2 offsets")
    assert ["PARTITION", "LEADER", "REPLICAS", "IN", "SYNC", "EARLIEST", "LATEST"] in lines
    assert [line[-2:] for line in lines if line[:1] in (["0"], ["1"])] == [["0", "0"], ["0", "2"]]


def test_describe_calls_a_topic_without_records_empty(odradek: Run, topic: str) -> None:
    assert odradek("topic", "describe", topic).output.splitlines()[0].endswith(" · empty")


def test_the_records_of_partitions_without_a_leader_are_not_counted() -> None:
    partitions: list[dict[str, Any]] = [
        {"earliest_offset": 1, "latest_offset": 4},
        {"earliest_offset": None, "latest_offset": None},
    ]
    assert offsets_text(partitions) == "3 offsets in partitions with a leader"


def test_describe_as_json(odradek: Run, topic: str) -> None:
    row = odradek("topic", "describe", topic, "--format", "json").row
    assert row["topic"] == topic
    assert row["internal"] is False
    assert len(base64.urlsafe_b64decode(row["topic_id"] + "==")) == 16
    assert [partition["partition"] for partition in row["partitions"]] == [0, 1]
    for partition in row["partitions"]:
        assert partition["replicas"] == partition["in_sync_replicas"] == [partition["leader"]]
        assert partition["earliest_offset"] == partition["latest_offset"] == 0


def test_describe_several_gives_a_line_each(odradek: Run, topic: str, new_name: NewName) -> None:
    other = new_name()
    odradek("topic", "create", other, "-p", "1")
    assert {row["topic"] for row in odradek("topic", "describe", topic, other, "--format", "json").rows} == {
        topic,
        other,
    }


def test_describe_shows_configs_that_differ_from_the_default(odradek: Run, new_name: NewName) -> None:
    name = new_name()
    odradek("topic", "create", name, "-c", "retention.ms=123456", "-c", "cleanup.policy=compact")
    configs = odradek("topic", "describe", name, "--format", "json").row["configs"]
    assert configs["retention.ms"] == {"value": "123456", "source": "dynamic topic", "default": False}
    assert configs["cleanup.policy"]["value"] == "compact"
    assert "segment.bytes" not in configs
    text = odradek("topic", "describe", name).output
    assert ["retention.ms", "123456", "dynamic", "topic"] in [line.split() for line in text.splitlines()]


def test_a_setting_of_the_cluster_that_equals_the_default_is_not_shown(odradek: Run, topic: str) -> None:
    assert odradek("topic", "describe", topic).output.endswith("All settings have their default values.\n")


def test_describe_shows_all_configs_on_demand(odradek: Run, topic: str) -> None:
    configs = odradek("topic", "describe", topic, "--all-configs", "--format", "json").row["configs"]
    assert configs["segment.bytes"]["value"] == "1073741824"
    assert configs["segment.bytes"]["default"] is True


def test_describe_of_a_missing_topic_fails_and_does_not_create_it(odradek: Run, new_name: NewName) -> None:
    name = new_name()
    ran = odradek("topic", "describe", name)
    assert ran.code == 1
    assert f"topic {name}: there is no such topic" in ran.errors
    assert name not in odradek("topic", "list").output


def test_alter_adds_partitions(odradek: Run, topic: str) -> None:
    ran = odradek("topic", "alter", topic, "--partitions", "5")
    assert (ran.code, ran.output) == (0, f"topic {topic} now has 5 partitions\n")
    assert len(odradek("topic", "describe", topic, "--format", "json").row["partitions"]) == 5


def test_alter_refuses_fewer_partitions(odradek: Run, topic: str) -> None:
    ran = odradek("topic", "alter", topic, "--partitions", "1")
    assert ran.code == 1
    assert "INVALID_PARTITIONS" in ran.errors


def test_alter_sets_and_deletes_configs(odradek: Run, topic: str) -> None:
    assert odradek("topic", "alter", topic, "-c", "retention.ms=1", "-c", "segment.ms=2").code == 0
    ran = odradek("topic", "alter", topic, "-c", "segment.ms=3", "-d", "retention.ms", "--format", "json")
    assert ran.row == {"topic": topic, "partitions": None, "set": {"segment.ms": "3"}, "deleted": ["retention.ms"]}
    configs = odradek("topic", "describe", topic, "--format", "json").row["configs"]
    assert configs["segment.ms"]["value"] == "3"
    assert "retention.ms" not in configs


def test_alter_names_an_unknown_config(odradek: Run, topic: str) -> None:
    ran = odradek("topic", "alter", topic, "-c", "no.such.config=1")
    assert ran.code == 1
    assert "no.such.config" in ran.errors


def test_alter_of_nothing_is_wrong_usage(offline: Run) -> None:
    ran = offline("topic", "alter", "a")
    assert ran.code == 2
    assert "nothing to alter" in ran.errors


def test_delete_asks_and_so_needs_yes_in_a_script(odradek: Run, topic: str) -> None:
    ran = odradek("topic", "delete", topic)
    assert ran.code == 2
    assert "--yes" in ran.errors


@pytest.mark.parametrize(
    "command",
    [
        ("topic", "describe"), ("topic", "delete", "--yes"), ("topic", "alter", "-p", "3"), ("consume",),
        ("partition", "elect", "--dry-run"),
    ],
)  # fmt: skip
def test_a_mistyped_topic_has_a_suggestion(odradek: Run, topic: str, command: tuple[str, ...]) -> None:
    mistyped = topic[:5] + topic[6:]
    assert f"; did you mean {topic}?" in odradek(*command, mistyped).errors


def test_topics_of_a_pattern_are_listed_and_deleted(odradek: Run, new_name: NewName) -> None:
    prefix = new_name()
    assert odradek("topic", "create", f"{prefix}-a", f"{prefix}-b", f"{prefix}x").code == 0
    unconfirmed = odradek("topic", "delete", f"{prefix}-*")
    assert unconfirmed.code == 2
    assert unconfirmed.errors.startswith(f"{prefix}-a\n{prefix}-b\n")
    ran = odradek("topic", "delete", f"{prefix}-*", "--yes")
    assert ran.output.splitlines() == [f"deleted topic {prefix}-a", f"deleted topic {prefix}-b"]
    assert f"{prefix}x" in odradek("topic", "list").output
    assert "no topic matches" in odradek("topic", "delete", "__consumer_*", "--yes").errors


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("n", 1)])
def test_delete_asks_the_person_at_the_terminal(
    odradek: Run, bootstrap_server: str, topic: str, answer: str, code: int
) -> None:
    ours, theirs = os.openpty()
    command = [sys.executable, "-m", "odradek", "topic", "delete", topic, "-b", bootstrap_server]
    with subprocess.Popen(command, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        os.close(theirs)
        os.write(ours, f"{answer}\n".encode())
        _output, errors = process.communicate(timeout=60)
        os.close(ours)
    assert f"Delete {topic} and all records?".encode() in errors
    assert process.returncode == code
    assert (topic in odradek("topic", "list").output) is (answer == "n")


def test_delete_several_reports_what_failed_and_does_the_rest(odradek: Run, topic: str, new_name: NewName) -> None:
    missing = new_name()
    ran = odradek("topic", "delete", topic, missing, "--yes")
    assert (ran.code, ran.output) == (1, f"deleted topic {topic}\n")
    assert f"topic {missing}: there is no such topic" in ran.errors
    assert topic not in odradek("topic", "list").output


def test_all_topics_or_those_of_a_pattern_are_described(odradek: Run, new_name: Callable[[], str]) -> None:
    prefix = new_name()
    names = [f"{prefix}-{letter}" for letter in "ab"]
    for name in names:
        assert odradek("topic", "create", name).code == 0
    matching = odradek("topic", "describe", f"{prefix}-*", "--format", "json")
    assert [row["topic"] for row in matching.rows] == names
    both = odradek("topic", "describe", names[1], f"{prefix}-?", "--format", "json")
    assert [row["topic"] for row in both.rows] == [names[1], names[0]]
    everything = {row["topic"] for row in odradek("topic", "describe", "--format", "json").rows}
    assert set(names) <= everything
    assert not any(name.startswith("__") for name in everything)


def test_a_pattern_that_matches_no_topic_is_a_failure(odradek: Run, new_name: Callable[[], str]) -> None:
    pattern = f"{new_name()}*"
    ran = odradek("topic", "describe", pattern)
    assert (ran.code, ran.output) == (1, "")
    assert f"no topic matches {pattern}" in ran.errors


@pytest.mark.parametrize("command", ["create", "alter"])
def test_a_mistyped_setting_has_a_suggestion(
    odradek: Run, topic: str, new_name: Callable[[], str], command: str
) -> None:
    ran = odradek("topic", command, topic if command == "alter" else new_name(), "--config", "retention.mss=1")
    assert ran.code == 1
    assert "retention.mss (INVALID_CONFIG); did you mean retention.ms?" in ran.errors


def test_setting_names_are_completed(offline: Run) -> None:
    assert complete(offline, "odradek topic create a --config segment.m") == ["segment.ms="]
    assert complete(offline, "odradek topic alter a --delete-config segment.m") == ["segment.ms"]
