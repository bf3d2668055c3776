"""The same appends, markers and verifications on a partition and on Apache Kafka's own log: the same is refused with
the same errors, and the same producers, last stable offset and aborted transactions follow."""

import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from odradek.log.aborted_transactions import collect_aborted
from odradek.log.log_config import LogConfig
from odradek.log.transaction_verification import VerificationGuard
from odradek.protocol.control_records import ControlRecordType, EndTransactionMarker
from odradek.protocol.errors import ErrorCode
from tests.jvm.json_session import JsonSession
from tests.log.batches import EVERYTHING
from tests.log.compaction.compacted_logs import keyed_batch
from tests.replica.led_partitions import LedPartition
from tests.simulation.simulated_host import Simulation

pytestmark = [pytest.mark.more, pytest.mark.jvm, pytest.mark.timeout(300)]

SEGMENT_BYTES = 700
STEPS = 150
PRODUCERS = (1, 2, 3, 4)
COORDINATORS_PRODUCER = 4  # the group coordinator writes its batches, without sequence numbers


@pytest.fixture(scope="module")
def kafka(jvm: None) -> Iterator[JsonSession]:
    with JsonSession("odradek.TransactionLogSession") as session:
        yield session


class Comparison:
    def __init__(self, kafka: JsonSession, directory: Path, seed: int) -> None:
        self.kafka = kafka
        self.directory = directory
        self.chance = random.Random(seed)
        self.deletes = seed % 2 == 1
        self.simulation = Simulation(seed)
        config = LogConfig(segment_bytes=SEGMENT_BYTES, message_timestamp_after_max_ms=EVERYTHING)
        self.ours = LedPartition(self.simulation, config)
        self.guards: dict[int, VerificationGuard] = {}  # by the numbers that the session gives them
        self.last_guard = dict.fromkeys(PRODUCERS, -1)
        self.batch_ends = [0]
        self.errors: set[ErrorCode] = set()
        self.call({"op": "open", "directory": str(directory), "segment_bytes": SEGMENT_BYTES})

    @property
    def partition(self) -> Any:
        return self.ours.partition

    def call(self, question: dict[str, Any]) -> dict[str, Any]:
        answer: dict[str, Any] = self.kafka.call(question)
        return answer

    def step(self) -> None:
        steps = {
            self.append: 12,
            self.verify: 6,
            self.end_transaction: 7,
            self.commit: 6,
            self.compare_aborted: 4,
            self.roll: 1,
            # After a deletion Kafka's log, when it is truncated or opened, forgets producers that ours still knows.
            self.truncate: 0 if self.deletes else 1,
            self.reopen: 0 if self.deletes else 1,
            self.delete_records: 1 if self.deletes else 0,
        }
        (step,) = self.chance.choices(list(steps), list(steps.values()))
        answer = step()
        if answer is not None:
            self.compare(answer)

    def compare(self, kafkas: dict[str, Any]) -> None:
        log = self.partition.log
        assert (log.log_start_offset, log.log_end_offset) == (kafkas["log_start_offset"], kafkas["log_end_offset"])
        assert self.partition.high_watermark == kafkas["high_watermark"]
        assert self.partition.last_stable_offset == kafkas["last_stable_offset"]
        producers = sorted(
            [
                each.producer_id,
                each.producer_epoch,
                each.last_sequence,
                each.coordinator_epoch,
                each.transaction_first_offset,
            ]
            for each in self.partition.transactions.describe_producers()
        )
        assert producers == sorted(kafkas["producers"])

    def next_of(self, producer_id: int) -> tuple[int, int]:
        """The epoch and the sequence number that would be right, most often."""
        entry = self.partition.log.producers.entries.get(producer_id)
        epoch, sequence = (entry.epoch, entry.next_sequence) if entry else (0, 0)
        (change,) = self.chance.choices([0, 1, -1], [8, 2, 1])
        epoch = max(0, epoch + change)
        sequence = sequence if change == 0 else 0
        return epoch, max(0, sequence + self.chance.choice([0] * 9 + [-2, 1]))

    def append(self) -> dict[str, Any]:
        producer_id = self.chance.choice(PRODUCERS)
        epoch, sequence = self.next_of(producer_id)
        is_coordinators = producer_id == COORDINATORS_PRODUCER
        batch = keyed_batch(
            [(b"k", b"v" * self.chance.randrange(40))] * self.chance.randint(1, 3),
            producer=(producer_id, epoch, -1 if is_coordinators else sequence),
            is_transactional=self.chance.random() < 0.85,
            timestamp=time.time_ns() // 1_000_000,
        )
        number = self.chance.choice([self.last_guard[producer_id]] * 7 + [-1, *self.guards])
        answer = self.call(
            {
                "op": "append",
                "batch": bytes(batch).hex(),
                "guard": number,
                "origin": "COORDINATOR" if is_coordinators else "CLIENT",
            }
        )
        result = self.partition.append(batch, 1, is_built_here=is_coordinators, verification=self.guards.get(number))
        self.judge(result, answer)
        return answer

    def judge(self, result: Any, answer: dict[str, Any]) -> None:
        self.errors.add(result.error)
        assert result.error.name == answer["error"]
        if result.error is ErrorCode.NONE:
            assert result.base_offset == answer["base_offset"]
            self.batch_ends.append(self.partition.log.log_end_offset)

    def verify(self) -> dict[str, Any]:
        producer_id = self.chance.choice(PRODUCERS)
        epoch, sequence = self.next_of(producer_id)
        supports_epoch_bump = producer_id % 2 == 0  # a departure from Kafka: clients of both versions on one id
        answer = self.call(
            {
                "op": "verify",
                "producer_id": producer_id,
                "producer_epoch": epoch,
                "sequence": sequence,
                "supports_epoch_bump": supports_epoch_bump,
            }
        )
        guard = self.partition.transactions.begin_verification(
            producer_id, epoch, sequence, supports_epoch_bump=supports_epoch_bump, now_ms=0
        )
        if isinstance(guard, ErrorCode):
            assert guard.name == answer["error"]
        else:
            assert (guard is None) == (answer["guard"] == -1)
            assert self.partition.log.producers.has_open_transaction(producer_id, epoch) == (guard is None)
            if guard is not None:
                assert self.guards.setdefault(answer["guard"], guard) is guard
                self.last_guard[producer_id] = answer["guard"]
        return answer

    def end_transaction(self) -> dict[str, Any]:
        producer_id = self.chance.choice(PRODUCERS)
        entry = self.partition.log.producers.entries.get(producer_id)
        epoch, coordinator_epoch = (entry.epoch, entry.coordinator_epoch) if entry else (0, 0)
        epoch = max(0, epoch + self.chance.choice([0, 0, 1, 1, 1, -1]))
        coordinator_epoch = max(0, coordinator_epoch + self.chance.choice([0] * 6 + [1, -1]))
        kind = self.chance.choice(list(ControlRecordType))
        version = self.chance.randint(0, 2)
        answer = self.call(
            {
                "op": "marker",
                "producer_id": producer_id,
                "producer_epoch": epoch,
                "coordinator_epoch": coordinator_epoch,
                "type": kind.name,
                "transaction_version": version,
            }
        )
        marker = EndTransactionMarker(producer_id, epoch, kind, coordinator_epoch)
        self.judge(self.partition.append_marker(marker, transaction_version=version), answer)
        return answer

    def commit(self) -> dict[str, Any]:
        offset = self.chance.choice([each for each in self.batch_ends if each >= self.partition.high_watermark])
        stable_before = self.partition.last_stable_offset
        self.partition.advance_high_watermark(offset)
        assert self.partition.last_stable_offset >= stable_before
        return self.call({"op": "high_watermark", "offset": offset})

    def compare_aborted(self) -> None:
        end = self.partition.last_stable_offset
        for _ in range(3):
            first, last = sorted(self.chance.randint(self.partition.log.log_start_offset, end) for _ in range(2))
            kafkas = self.call({"op": "aborted", "first": first, "end": last})["aborted"]
            found = [list(each) for each in collect_aborted(self.partition.log.segments, first, last)]
            assert found == [each for each in kafkas if each[2] >= first], (
                "this method of Kafka's looks at whole segments"
            )

    def roll(self) -> dict[str, Any]:
        self.partition.log.roll()
        return self.call({"op": "roll"})

    def truncate(self) -> dict[str, Any] | None:
        if self.partition.log.producers.verifications.pending:
            return None  # Kafka's log keeps those of producers without batches after the last snapshot
        offset = self.partition.high_watermark
        self.ours.truncate_to(offset)
        self.batch_ends = [each for each in self.batch_ends if each <= offset]
        return self.call({"op": "truncate", "offset": offset})

    def delete_records(self) -> dict[str, Any]:
        offset = self.chance.choice([each for each in self.batch_ends if each <= self.partition.high_watermark])
        assert self.partition.delete_records_before(offset) is ErrorCode.NONE
        return self.call({"op": "delete_before", "offset": offset})

    def reopen(self) -> dict[str, Any]:
        high_watermark, start = self.partition.high_watermark, self.partition.log.log_start_offset
        self.partition.log.close()
        self.ours.open(clean_shutdown=True, log_start_offset=start, high_watermark=high_watermark)
        self.last_guard = dict.fromkeys(PRODUCERS, -1)
        question = {"directory": str(self.directory), "segment_bytes": SEGMENT_BYTES, "log_start_offset": start}
        self.call({"op": "open", **question})
        return self.call({"op": "high_watermark", "offset": high_watermark})


@pytest.mark.parametrize("seed", range(8))
def test_the_same_is_refused_and_the_same_is_stable(kafka: JsonSession, tmp_path: Path, seed: int) -> None:
    directory = tmp_path / "topic-0"
    directory.mkdir()
    comparison = Comparison(kafka, directory, seed)
    try:
        for _ in range(STEPS):
            comparison.step()
    finally:
        comparison.simulation.close()
    assert comparison.errors >= {ErrorCode.NONE, ErrorCode.INVALID_TXN_STATE, ErrorCode.INVALID_PRODUCER_EPOCH}
