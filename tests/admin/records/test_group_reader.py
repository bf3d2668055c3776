"""`odradek consume --group`: a member of a consumer group, which commits what it has written."""

from __future__ import annotations

from collections import deque
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import pytest
from confluent_kafka import KafkaError, TopicPartition

from odradek.admin.records import group_reader
from odradek.admin.records.group_reader import GroupReader
from odradek.conventions.failures import Failure
from odradek.testing import broker
from tests.cli.completion.test_command import complete

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from odradek.admin.cluster import Cluster
    from tests.commands import Ran, Run


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


def test_a_new_group_that_waits_for_new_records_says_so(odradek: Run, numbered: str, group: str) -> None:
    text = f"group {group} has no offsets of partitions 0, 1 of {numbered}: only new records are read"
    assert text in odradek("consume", numbered, "--group", group, "--timeout", "100ms").errors
    ran = odradek("consume", numbered, "--group", group, "--from-beginning", "--until-end")
    assert (ran.output.split(), "only new records" in ran.errors) == ([*map(str, range(10))], False)


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


class ScriptedRecord(NamedTuple):
    """A record of partition 0."""

    text: str

    def topic(self) -> str:
        return "numbers"

    def partition(self) -> int:
        return 0


class Script:
    """Events of a member: a rebalance calls the callbacks, a record or the end of partition 0 is fetched."""

    def __init__(self, *events: str) -> None:
        self.events = deque(events)
        self.at_end: set[int] = set()
        self.committed_errors: dict[int, KafkaError] = {}  # of the next look-up
        self.assigned: list[int] = []

    def consumer(self, _properties: dict[str, object]) -> Script:
        return self

    def subscribe(self, _topics: list[str], **callbacks: Callable[..., None]) -> None:
        self.callbacks = callbacks

    def incremental_assign(self, partitions: list[TopicPartition]) -> None: ...

    def pause(self, partitions: list[TopicPartition]) -> None: ...

    def committed(self, partitions: list[TopicPartition], _timeout_s: float) -> list[Any]:
        errors, self.committed_errors = self.committed_errors, {}
        return [
            SimpleNamespace(topic=each.topic, partition=each.partition, offset=-1001, error=errors.get(each.partition))
            for each in partitions
        ]

    def failure(self, error: KafkaError, subject: str) -> Failure:
        return Failure(f"{subject}: {error.str()}")

    def poll(self, _timeout_s: float) -> None:
        kind, _, value = self.events[0].partition(" ")
        if kind in self.callbacks:
            self.events.popleft()
            self.callbacks[kind](self, [TopicPartition("numbers", int(number)) for number in value.split()])


class ScriptedFetcher:
    def __init__(self, script: Any, _settings: object, _on_unreadable: object, on_trouble: object) -> None:
        self.script: Script = script

    def assign(self, offsets: Iterable[tuple[tuple[str, int], int]]) -> None:
        added = [partition for (_topic, partition), _offset in offsets]
        self.script.at_end -= set(added)
        self.script.assigned += added

    def remove(self, keys: Iterable[tuple[str, int]]) -> None:
        self.script.at_end -= {partition for _topic, partition in keys}

    def is_at_end(self, key: tuple[str, int]) -> bool:
        return key[1] in self.script.at_end

    def poll(self, _timeout_s: float) -> list[ScriptedRecord]:
        kind, _, value = self.script.events[0].partition(" ") if self.script.events else ("", "", "")
        if kind not in ("record", "end", "trouble"):
            return []
        self.script.events.popleft()
        if kind != "record":
            self.script.at_end |= {0} if kind == "end" else set()
            return []
        return [ScriptedRecord(value)]


def values_until_end(monkeypatch: pytest.MonkeyPatch, *events: str) -> list[str]:
    """The values that `--until-end` reads from these events, of which it must consume all."""
    script = Script(*events)
    monkeypatch.setattr(group_reader, "RecordFetcher", ScriptedFetcher)
    reader = GroupReader(cast("Cluster", script), ["numbers"], "readers", from_beginning=True, until_end=True)
    values = [cast("Any", record).text for batch in reader.batches() for record in batch]
    assert not script.events
    return values


@pytest.mark.parametrize("revocation", ["on_revoke", "on_lost"])
def test_until_end_continues_after_a_rebalance_that_revokes_all_partitions(
    monkeypatch: pytest.MonkeyPatch, revocation: str
) -> None:
    before = ("on_assign 0", "record one", f"{revocation} 0")
    assert values_until_end(monkeypatch, *before, "on_assign 0", "record two", "end") == ["one", "two"]


def test_until_end_ends_when_the_next_assignment_is_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    assert values_until_end(monkeypatch, "on_assign 0", "record one", "on_revoke 0", "on_assign") == ["one"]


def test_until_end_ends_when_the_unfinished_partitions_are_revoked_and_the_kept_ones_are_at_their_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert values_until_end(monkeypatch, "on_assign 0 1", "record one", "end", "on_revoke 1") == ["one"]


@pytest.mark.parametrize("is_retriable", [True, False])
def test_a_partition_whose_committed_offset_is_not_known_is_not_read_from_the_default_offset(
    monkeypatch: pytest.MonkeyPatch, is_retriable: bool
) -> None:
    script = Script("on_assign 0 1", "trouble", "trouble", "end", "on_revoke 1")
    script.committed_errors = {0: KafkaError(KafkaError._FAIL, "not known", False, is_retriable)}
    monkeypatch.setattr(group_reader, "RecordFetcher", ScriptedFetcher)
    reader = GroupReader(cast("Cluster", script), ["numbers"], "readers", from_beginning=True, until_end=True)
    if is_retriable:
        assert [records for records in reader.batches() if records] == []
        assert script.assigned == [1, 0]
    else:
        with pytest.raises(Failure, match="group readers, numbers-0: not known"):
            list(reader.batches())
