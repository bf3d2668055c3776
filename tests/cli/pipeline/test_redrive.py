"""`odradek pipeline redrive`: exact bytes, at most once, by several at a time, and within its limits."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from odradek.admin import letters as dead_letters
from odradek.admin.cluster import Cluster
from odradek.admin.letters import Selection, plan_redrive, redrive
from odradek.admin.records.record_reader import PartitionRange
from odradek.admin.topics import delete_topics
from odradek.conventions.failures import Failure
from odradek.pipelines.letters import ledger as ledgers
from odradek.pipelines.letters.letter import WITH_ORIGIN, WITHOUT_ORIGIN
from tests.commands import run_odradek

if TYPE_CHECKING:
    from collections.abc import Callable

    from confluent_kafka import Message

PATIENCE_S = 60.0
OWN_HEADERS = [("source", b"own"), ("trace", b"\xff\x00"), ("empty", None), ("source", b"")]


@pytest.fixture
def letters(bootstrap_server: str, new_name: Callable[[], str]) -> tuple[str, str]:
    """A source topic with three partitions, and its dead letters: 30 with an origin, one without, one of others."""
    source, dead = new_name(), new_name()
    cluster = Cluster(bootstrap_server, {})
    assert cluster.create_topic(source, 3)
    assert cluster.create_topic(dead, 2)
    producer = Producer({"bootstrap.servers": bootstrap_server})
    for number in range(30):
        step, reason = ("rigs", b"not JSON: {") if number % 3 else ("readings", b"expectation 'x' not met: a < 1")
        values = (reason, b"p", step.encode(), source.encode(), b"%d:%d" % (number % 3, number), b"id")
        headers: list[tuple[str, str | bytes | None]] = [*zip(WITH_ORIGIN, values, strict=True), *OWN_HEADERS]
        value = None if number == 7 else b"\xff\x00value %d" % number
        producer.produce(dead, value, b"\xfe%d" % number if number else None, number % 2, headers=headers)
    producer.produce(dead, b"{}", partition=1, headers=[(name, b"x") for name in WITHOUT_ORIGIN])
    producer.produce(dead, b"not a dead letter", partition=1)
    assert producer.flush(PATIENCE_S) == 0
    return source, dead


def written(bootstrap_server: str, topic: str) -> list[Message]:
    consumer = Consumer({"bootstrap.servers": bootstrap_server, "group.id": "test", "enable.partition.eof": True})
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(3)])
    found, ended = [], 0
    while ended < 3:
        message = consumer.poll(PATIENCE_S)
        assert message is not None
        ended += message.error() is not None
        found += [] if message.error() is not None else [message]
    consumer.close()
    return found


def test_records_return_to_their_partitions_as_they_were(bootstrap_server: str, letters: tuple[str, str]) -> None:
    source, dead = letters
    dry = run_odradek("pipeline", "redrive", dead, "--dry-run", "--format", "json", "-b", bootstrap_server)
    assert (dry.row["records"], dry.row["topics"], dry.row["without_origin"]) == (30, {source: 30}, 1)
    assert written(bootstrap_server, source) == []
    done = run_odradek("pipeline", "redrive", dead, "--yes", "-b", bootstrap_server)
    assert "wrote 30 dead letters back (" in done.output
    assert f"30 to {source}" in done.output
    found = written(bootstrap_server, source)
    assert sorted(message.value() or b"" for message in found) == sorted(
        b"" if number == 7 else b"\xff\x00value %d" % number for number in range(30)
    )
    for message in found:
        assert message.headers() == OWN_HEADERS
        key = message.key()
        if key is not None:
            number = int(key[1:])
            assert message.partition() == number % 3
    again = run_odradek("pipeline", "redrive", dead, "--yes", "--format", "json", "-b", bootstrap_server)
    assert (again.row["records"], again.row["redriven_before"]) == (0, 30)
    assert len(written(bootstrap_server, source)) == 30
    forced = run_odradek("pipeline", "redrive", dead, "--yes", "--again", "--record", "0:0", "-b", bootstrap_server)
    assert "wrote 1 dead letter back" in forced.output
    assert len(written(bootstrap_server, source)) == 31


@pytest.mark.parametrize("output", ["text", "json"])
def test_nothing_is_written_without_a_confirmation(
    bootstrap_server: str, letters: tuple[str, str], output: str
) -> None:
    source, dead = letters
    refused = run_odradek("pipeline", "redrive", dead, "--format", output, "-b", bootstrap_server)
    assert (refused.code, "confirm with --yes" in refused.errors) == (2, True)
    assert written(bootstrap_server, source) == []


def test_a_selection_and_a_limit(bootstrap_server: str, letters: tuple[str, str]) -> None:
    source, dead = letters
    cluster = Cluster(bootstrap_server, {})
    assert plan_redrive(cluster, Selection(dead, step="readings")).records == 10
    assert plan_redrive(cluster, Selection(dead, reason="not JSON")).records == 20
    assert plan_redrive(cluster, Selection(dead, pipeline="other")).records == 0
    first = redrive(cluster, Selection(dead, limit=12))
    assert (first.records, first.is_cut) == (12, True)
    chosen = redrive(cluster, Selection(dead, frozenset({(1, 0), (1, 3), (0, 0), (1, 99)})))
    assert (chosen.records, chosen.done_before) == (2, 1)
    assert redrive(cluster, Selection(dead, ends={0: 15, 1: 5})).records == 6
    assert len(written(bootstrap_server, source)) == 20


def test_a_limit_of_records_that_are_read_keeps_the_oldest_letters(
    bootstrap_server: str, letters: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Letters that were written back do not count, so that each redrive continues."""
    source, dead = letters
    cluster = Cluster(bootstrap_server, {})
    monkeypatch.setattr(dead_letters, "MOST_READ", 12)
    first = redrive(cluster, Selection(dead))
    assert (first.positions[0], first.records, first.is_cut) == ((0, 0), 12, True)
    assert (redrive(cluster, Selection(dead)).records, len(written(bootstrap_server, source))) == (12, 24)
    last = redrive(cluster, Selection(dead))
    assert (last.records, last.is_cut, len(written(bootstrap_server, source))) == (6, False, 30)
    chosen = frozenset({(0, 0), (0, 13), (1, 1), (1, 14)})
    assert redrive(cluster, Selection(dead, chosen), again=True).records == 4


def test_offsets_that_are_far_apart_are_read_as_spans_of_their_own() -> None:
    assert dead_letters.spans_of(2, [5, 3, 9_000_000, 9_000_001, 90], 4, 9_000_001) == [
        PartitionRange(2, 5, 91), PartitionRange(2, 9_000_000, 9_000_001)
    ]  # fmt: skip
    assert dead_letters.spans_of(2, [3], 4, 9) == []


def test_a_redrive_again_of_more_than_the_limit_is_refused(bootstrap_server: str, letters: tuple[str, str]) -> None:
    """It would begin with the first letters each time."""
    source, dead = letters
    cluster = Cluster(bootstrap_server, {})
    for attempt in (plan_redrive, redrive):
        with pytest.raises(Failure, match="begins with the oldest ones each time"):
            attempt(cluster, Selection(dead, limit=29), again=True)
    assert written(bootstrap_server, source) == []
    assert redrive(cluster, Selection(dead, limit=30), again=True).records == 30


def test_redrives_at_the_same_time_write_nothing_twice(bootstrap_server: str, letters: tuple[str, str]) -> None:
    """One of them is fenced, or finds that the others were first."""
    source, dead = letters
    start = threading.Barrier(4)
    outcomes: list[str] = []

    def run() -> None:
        start.wait(PATIENCE_S)
        try:
            outcomes.append(str(redrive(Cluster(bootstrap_server, {}), Selection(dead)).records))
        except Failure as failure:
            outcomes.append(failure.message)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert len(outcomes) == 4, outcomes
    redrive(Cluster(bootstrap_server, {}), Selection(dead))
    found = written(bootstrap_server, source)
    assert len({(message.key(), message.value()) for message in found}) == len(found) == 30, outcomes


def test_an_open_transaction_in_the_ledger_stops_a_redrive(
    bootstrap_server: str, letters: tuple[str, str], new_name: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A redrive of another topic was killed: committed entries behind its transaction cannot be read."""
    source, dead = letters
    cluster = Cluster(bootstrap_server, {})
    monkeypatch.setattr(dead_letters, "OPEN_TRANSACTION_S", 0.3)
    assert redrive(cluster, Selection(dead, limit=1)).records == 1  # creates the ledger
    killed = transactional(bootstrap_server, new_name())
    killed.produce(ledgers.TOPIC, b"{}", b"other", 0)
    killed.flush(PATIENCE_S)
    try:
        producer = Producer({"bootstrap.servers": bootstrap_server})
        for key, value in dead_letters.read_ledger(cluster, dead, must_be_complete=False).add([(0, 1), (0, 2)]):
            producer.produce(ledgers.TOPIC, value, key, 0)
        assert producer.flush(PATIENCE_S) == 0
        with pytest.raises(Failure, match="open transaction at offset"):
            redrive(cluster, Selection(dead))
        with pytest.raises(Failure, match="open transaction at offset"):
            plan_redrive(cluster, Selection(dead))
    finally:
        killed.abort_transaction(PATIENCE_S)
    done = redrive(cluster, Selection(dead))
    assert (done.records, done.done_before) == (27, 3)
    assert len(written(bootstrap_server, source)) == 28


def test_entries_of_an_aborted_redrive_do_not_count(
    bootstrap_server: str, letters: tuple[str, str], new_name: Callable[[], str]
) -> None:
    """Even if the user's properties ask for uncommitted records."""
    source, dead = letters
    cluster = Cluster(bootstrap_server, {"isolation.level": "read_uncommitted"})
    assert redrive(cluster, Selection(dead, limit=1)).records == 1
    aborted = transactional(bootstrap_server, new_name())
    for key, value in dead_letters.read_ledger(cluster, dead).add([(0, 1), (0, 2)]):
        aborted.produce(ledgers.TOPIC, value, key, 0)
    aborted.flush(PATIENCE_S)
    aborted.abort_transaction(PATIENCE_S)
    done = redrive(cluster, Selection(dead))
    assert (done.records, done.done_before) == (29, 1)
    assert len(written(bootstrap_server, source)) == 30


def test_a_reading_that_stops_before_its_end_is_a_failure(
    bootstrap_server: str, letters: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _source, dead = letters
    monkeypatch.setattr(dead_letters, "IDLE_MS", 0)
    monkeypatch.setattr("odradek.admin.records.record_reader.POLL_S", 0.0)
    with pytest.raises(Failure, match="was not read up to offset"):
        plan_redrive(Cluster(bootstrap_server, {}), Selection(dead))


def transactional(bootstrap_server: str, name: str) -> Producer:
    """A producer with a transaction that has begun."""
    producer = Producer({"bootstrap.servers": bootstrap_server, "transactional.id": name})
    producer.init_transactions(PATIENCE_S)
    producer.begin_transaction()
    return producer


def test_entries_of_the_ledger_are_in_its_first_partition(
    bootstrap_server: str, letters: tuple[str, str], new_name: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A ledger that the broker, or somebody, has created with more partitions."""
    source, dead = letters
    cluster = Cluster(bootstrap_server, {})
    monkeypatch.setattr(ledgers, "TOPIC", new_name())
    assert cluster.create_topic(ledgers.TOPIC, 50)
    assert redrive(cluster, Selection(dead)).records == 30
    assert redrive(cluster, Selection(dead)).records == 0
    assert len(written(bootstrap_server, source)) == 30


def test_a_ledger_that_exists_is_not_created(
    bootstrap_server: str, letters: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Create is needed for the first redrive only."""
    _source, dead = letters
    redrive(Cluster(bootstrap_server, {}), Selection(dead, limit=1))

    def refuse(*_arguments: object, **_rest: object) -> bool:
        raise Failure("needs Create")

    monkeypatch.setattr(Cluster, "create_topic", refuse)
    assert redrive(Cluster(bootstrap_server, {}), Selection(dead)).records == 29


def test_letters_of_a_topic_that_was_created_again_are_new(bootstrap_server: str, letters: tuple[str, str]) -> None:
    source, dead = letters
    cluster = Cluster(bootstrap_server, {})
    assert redrive(cluster, Selection(dead)).records == 30
    values = (b"not JSON: {", b"p", b"rigs", source.encode(), b"0:1", b"id")
    assert delete_topics(cluster, [dead]) == {dead: None}
    assert cluster.create_topic(dead, 2)
    producer = Producer({"bootstrap.servers": bootstrap_server})
    producer.produce(dead, b"new", partition=0, headers=[*zip(WITH_ORIGIN, values, strict=True)])
    assert producer.flush(PATIENCE_S) == 0
    done = redrive(cluster, Selection(dead))
    assert (done.records, done.done_before) == (1, 0)
    assert redrive(cluster, Selection(dead)).done_before == 1
    assert len(written(bootstrap_server, source)) == 31


def test_a_commit_without_an_answer_is_not_reported_as_nothing_written(
    bootstrap_server: str, letters: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    source, dead = letters
    cluster = Cluster(bootstrap_server, {})
    monkeypatch.setattr(dead_letters, "TRANSACTION_LETTERS", 20)
    commit = dead_letters._commit
    commits: list[int] = []

    def time_out(producer: Producer) -> None:
        commit(producer)
        commits.append(1)
        if len(commits) == 2:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "no answer"))

    monkeypatch.setattr(dead_letters, "_commit", time_out)
    with pytest.raises(Failure) as failed:
        redrive(cluster, Selection(dead))
    assert "20 dead letters were written back, the others may not have been" in failed.value.message
    assert "run it again" in failed.value.message
    assert redrive(cluster, Selection(dead)).records == 0
    assert len(written(bootstrap_server, source)) == 30


def test_a_source_topic_that_does_not_exist_is_named(bootstrap_server: str, letters: tuple[str, str]) -> None:
    source, dead = letters
    run_odradek("topic", "delete", source, "--yes", "-b", bootstrap_server)
    refused = run_odradek("pipeline", "redrive", dead, "--yes", "-b", bootstrap_server)
    assert refused.code == 1
    assert source in refused.errors


def test_json_is_one_line(bootstrap_server: str, letters: tuple[str, str]) -> None:
    _source, dead = letters
    chosen = ("--dry-run", "--record", "0:0", "--format", "json")
    ran = run_odradek("pipeline", "redrive", dead, *chosen, "-b", bootstrap_server)
    assert json.loads(ran.output)["reasons"] == {"expectation 'x' not met": 1}
