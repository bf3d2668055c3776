"""Splits in transactions, on Odradek and on Apache Kafka, without Spark: each record is there once, despite crashes and
replays."""

from __future__ import annotations

import threading
import uuid
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # not in __all__
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from odradek.pipelines.spark.writing import transactional_writer
from odradek.pipelines.spark.writing.transactional_writer import (
    SPLIT,
    Assignment,
    DeliveryFailed,
    Mark,
    SplitWriter,
    TakenOver,
    call_with_deadline,
    claim_split,
    opened,
    read_mark,
    write_split,
)
from tests.pipelines.committed import committed_records

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.testing import RunningBroker
    from tests.jvm.shared_kafka import KafkaAddress

SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
        (SPLIT, pa.int32()),
    ]
)
WORKERS = st.integers(0, 1)


@pytest.mark.parametrize(
    ("query", "batch", "is_covered"), [("q", 2, True), ("q", 3, False), ("q", 4, False), ("other", 0, False)]
)
def test_a_mark_covers_the_batches_before_it(query: str, batch: int, is_covered: bool) -> None:
    assert Mark("q", 3).covers(query, batch) == is_covered


class Answers:
    """A fake consumer whose group returns an error code or an offset."""

    def __init__(self, *answers: tuple[int | None, int]) -> None:
        self._answers = iter(answers)

    def committed(self, _slots: object, _timeout_s: float) -> list[SimpleNamespace]:
        code, offset = next(self._answers)
        error = None if code is None else KafkaError(code)
        return [SimpleNamespace(error=error, offset=offset, metadata="q")]


def test_a_mark_that_cannot_be_read_is_not_taken_for_none() -> None:
    refusing: Any = Answers((KafkaError.GROUP_AUTHORIZATION_FAILED, -1001))
    with pytest.raises(KafkaException, match="GROUP_AUTHORIZATION_FAILED"):
        read_mark(refusing, ("marks", 0))
    loading: Any = Answers((KafkaError.COORDINATOR_LOAD_IN_PROGRESS, -1001), (None, 7))
    assert read_mark(loading, ("marks", 0)) == Mark("q", 7)


def test_a_call_that_does_not_return_is_left() -> None:
    is_over = threading.Event()

    def wait_for_ever() -> None:
        is_over.wait()

    with pytest.raises(DeliveryFailed, match=r"did not respond within 0\.1 s"):
        call_with_deadline(0.1, wait_for_ever)
    is_over.set()


def test_what_a_call_refuses_is_reported() -> None:
    def refuse() -> None:
        raise KafkaException(KafkaError(KafkaError.PRODUCER_FENCED))

    call_with_deadline(60.0, lambda: None)
    with pytest.raises(KafkaException, match="PRODUCER_FENCED"):
        call_with_deadline(60.0, refuse)


class Topic:
    """A topic, the marks of its splits, and the batches that are written to it."""

    def __init__(self, bootstrap_servers: str) -> None:
        self.bootstrap_servers = bootstrap_servers
        self.name, self.marks = f"out-{uuid.uuid4().hex}", f"marks-{uuid.uuid4().hex}"
        admin = AdminClient({"bootstrap.servers": bootstrap_servers})
        for future in admin.create_topics([NewTopic(self.name, 2, 1), NewTopic(self.marks, 2, 1)]).values():
            future.result(60)

    def assignment(self, batch: int, query: str = "q", epoch: int = 0) -> Assignment:
        return Assignment(self.bootstrap_servers, (), f"group-{self.name}", self.marks, query, batch, epoch)

    def records(self, batch: int, split: int, count: int = 3) -> pa.RecordBatch:
        value = f"{batch}/{split}".encode()
        headers = [{"key": "h", "value": b"1"}]
        row = {"topic": self.name, "key": b"k", "value": value, "headers": headers, SPLIT: split}
        rows = [row] * count
        return pa.RecordBatch.from_pylist(rows, SCHEMA)

    def values(self) -> Counter[str]:
        return Counter((each.value() or b"").decode() for each in committed_records(self.bootstrap_servers, self.name))


@pytest.fixture(params=["odradek", pytest.param("apache_kafka", marks=[pytest.mark.jvm, pytest.mark.oracle])])
def bootstrap_servers(request: pytest.FixtureRequest) -> str:
    name = "odradek_session_broker" if request.param == "odradek" else "apache_kafka"
    running: RunningBroker | KafkaAddress = request.getfixturevalue(name)
    return running.bootstrap_servers


@pytest.fixture
def topic(bootstrap_servers: str) -> Topic:
    return Topic(bootstrap_servers)


def test_a_driver_that_was_replaced_cannot_commit(topic: Topic) -> None:
    old = opened(topic.assignment(0), 0, {})
    assert old is not None
    old.add(topic.records(0, 0))
    assert write_split(topic.assignment(0), [topic.records(0, 0)], {}) == 3

    def more() -> Iterator[pa.RecordBatch]:
        yield topic.records(1, 0)
        assert write_split(topic.assignment(1), [topic.records(1, 0)], {}) == 3

    with pytest.raises(DeliveryFailed, match=r"batch 1 was not committed to .* another task has opened the split 0"):
        write_split(topic.assignment(1), more(), {})
    assert topic.values() == {"0/0": 3, "1/0": 3}


def test_an_earlier_run_cannot_open_a_split_that_a_later_one_has_claimed(topic: Topic) -> None:
    earlier, later = topic.assignment(0, "a", epoch=1), topic.assignment(0, "b", epoch=2)
    claim_split(earlier, 0)
    kept: dict[str, SplitWriter] = {}
    assert write_split(earlier, [topic.records(0, 0)], kept) == 3

    def interrupted() -> Iterator[pa.RecordBatch]:
        yield topic.records(1, 0)
        claim_split(later, 0)

    with pytest.raises(TakenOver, match="another run of this pipeline took over"):
        write_split(replace(earlier, batch=1), interrupted(), kept)
    writer = opened(later, 0, {})
    assert writer is not None
    with pytest.raises(TakenOver):  # neither with the producer that it has kept, nor with a new one
        write_split(replace(earlier, batch=1), [topic.records(1, 0)], kept)
    writer.add(topic.records(0, 0))
    writer.commit()  # the attempt of the earlier run has not fenced it
    with pytest.raises(TakenOver):
        claim_split(replace(earlier, epoch=2), 0)
    assert topic.values() == {"0/0": 6}


def test_a_claim_that_a_task_of_an_earlier_run_fences_is_repeated(
    topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    earlier, later = topic.assignment(0, "a", epoch=1), topic.assignment(0, "b", epoch=2)
    claim_split(earlier, 0)
    opening = [earlier]
    claim = SplitWriter.claim

    def fenced(self: SplitWriter, epoch: int) -> None:
        while opening:
            assert write_split(opening.pop(), [topic.records(0, 0)], {}) == 3
        claim(self, epoch)

    monkeypatch.setattr(SplitWriter, "claim", fenced)
    claim_split(later, 0)
    with pytest.raises(TakenOver):
        write_split(replace(earlier, batch=1), [topic.records(1, 0)], {})
    assert topic.values() == {"0/0": 3}


def test_a_writer_that_is_fenced_waits_for_the_epoch_of_the_later_run(
    topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise it would fail as if a task of its own run had opened the split, and its run would start again."""
    earlier = topic.assignment(0, "a", epoch=1)
    claim_split(earlier, 0)

    def interrupted() -> Iterator[pa.RecordBatch]:
        yield topic.records(0, 0)
        claiming = [SplitWriter(earlier, 0)]  # by the later run, whose epoch is not yet stored

        def stored_after(consumer: Consumer, slot: tuple[str, int]) -> Mark:
            found = read_mark(consumer, slot)
            while claiming:
                claiming.pop().claim(2)
            return found

        monkeypatch.setattr(transactional_writer, "read_mark", stored_after)

    with pytest.raises(TakenOver):
        write_split(earlier, interrupted(), {})
    assert topic.values() == {}


def test_of_two_runs_with_the_same_epoch_one_claims_a_split(topic: Topic) -> None:
    outcomes: list[type[Exception] | None] = []

    def claim(query: str) -> None:
        try:
            claim_split(topic.assignment(0, query, epoch=1), 0)
        except DeliveryFailed as error:
            outcomes.append(type(error))
        else:
            outcomes.append(None)

    threads = [threading.Thread(target=claim, args=(query,)) for query in "ab"]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(outcomes, key=str) == [TakenOver, None]


def test_a_mark_keeps_the_epoch_of_its_run() -> None:
    assert Mark.of_offset(4, Mark("q", 4, 7).metadata) == Mark("q", 4, 7)
    assert Mark.of_offset(4, "9e0c") == Mark("9e0c", 4, 0)  # written by a version without epochs


def test_what_fails_in_the_middle_is_not_there(topic: Topic) -> None:
    def broken() -> Iterator[pa.RecordBatch]:
        yield topic.records(0, 0)
        raise RuntimeError("out of memory")

    with pytest.raises(RuntimeError, match="out of memory"):
        write_split(topic.assignment(0), broken(), {})
    large = topic.records(0, 0).set_column(2, SCHEMA.field("value"), pa.array([b"x" * 2_000_000] * 3))
    with pytest.raises(DeliveryFailed, match=r"batch 0 was not committed to .*: .*too large"):
        write_split(topic.assignment(0), [topic.records(0, 0), large], {})
    assert topic.values() == {}
    assert write_split(topic.assignment(0), [topic.records(0, 0)], {}) == 3
    assert topic.values() == {"0/0": 3}


def test_a_batch_does_not_wait_for_ever_for_a_coordinator_that_does_not_answer() -> None:
    is_over = threading.Event()
    writer = object.__new__(SplitWriter)
    writer._slot, writer._mark, writer._group, writer._epoch = ("marks", 0), Mark("other", 0), None, 0
    producer: Any = SimpleNamespace(
        begin_transaction=lambda: None, send_offsets_to_transaction=lambda *_arguments: is_over.wait(60)
    )
    writer._producer = producer
    try:
        with pytest.raises(DeliveryFailed, match="did not respond within"):
            writer.begin("q", 0, 0.1)
    finally:
        is_over.set()


class Silent:
    """A fake producer of a restarted broker, whose call never returns."""

    def begin(self, *_batch: object) -> bool:
        raise DeliveryFailed("no answer")


def test_a_kept_producer_without_an_answer_is_replaced(topic: Topic) -> None:
    silent: Any = Silent()
    kept: dict[str, SplitWriter] = {topic.assignment(0).transactional_id(0): silent}
    assert write_split(topic.assignment(0), [topic.records(0, 0)], kept) == 3
    assert topic.values() == {"0/0": 3}
    assert isinstance(kept[topic.assignment(0).transactional_id(0)], SplitWriter)


def test_a_task_without_records_opens_nothing(topic: Topic) -> None:
    kept: dict[str, SplitWriter] = {}
    assert write_split(topic.assignment(0), [topic.records(0, 0, count=0)], kept) == 0
    assert not kept


def machine_for(bootstrap_servers: str) -> type[RuleBasedStateMachine]:
    class Replays(RuleBasedStateMachine):
        """Two splits, written by two workers with cached producers; a batch is replayed until it is complete."""

        def __init__(self) -> None:
            super().__init__()
            self.topic = Topic(bootstrap_servers)
            self.kept: list[dict[str, SplitWriter]] = [{}, {}]
            self.batch = 0
            self.done: set[int] = set()
            self.expected: Counter[str] = Counter()

        @rule(worker=WORKERS, split=st.integers(0, 1))
        def write(self, worker: int, split: int) -> None:
            written = write_split(
                self.topic.assignment(self.batch), [self.topic.records(self.batch, split)], self.kept[worker]
            )
            assert written == (0 if split in self.done else 3)
            self._note(split)

        @rule(worker=WORKERS, split=st.integers(0, 1))
        def die_before_the_commit(self, worker: int, split: int) -> None:
            writer = opened(self.topic.assignment(self.batch), split, self.kept[worker])
            assert (writer is None) == (split in self.done)
            if writer is not None:
                writer.add(self.topic.records(self.batch, split))
            self.kept[worker].clear()

        @rule(worker=WORKERS, split=st.integers(0, 1))
        def die_after_the_commit(self, worker: int, split: int) -> None:
            self.write(worker, split)
            self.kept[worker].clear()

        @rule()
        def next_batch(self) -> None:
            for split in {0, 1} - self.done:
                self.write(0, split)
            self.batch += 1
            self.done = set()

        def _note(self, split: int) -> None:
            if split not in self.done:
                self.done.add(split)
                self.expected[f"{self.batch}/{split}"] = 3

        def teardown(self) -> None:
            for split in {0, 1} - self.done:
                self.write(1, split)  # aborts the open transactions of dead writers
            assert self.topic.values() == self.expected

    return Replays


def test_replays_write_each_record_once(bootstrap_servers: str) -> None:
    # Without shrinking: each try takes a second on a real broker.
    run: Any = settings(max_examples=4, stateful_step_count=12, deadline=None, database=None, phases=[Phase.generate])
    run_state_machine_as_test(machine_for(bootstrap_servers), settings=run)
