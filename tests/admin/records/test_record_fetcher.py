"""Readers survive whatever a partition holds: they end, name what they cannot read, and return the rest."""

from __future__ import annotations

import ssl
import struct
import time
import tracemalloc
from contextlib import closing
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from odradek.admin.cluster import Cluster
from odradek.admin.errors import BadCredentials
from odradek.admin.offsets import EARLIEST, LATEST
from odradek.admin.records import record_reader
from odradek.admin.records.fetched_batches import PartitionReader
from odradek.admin.records.record_fetcher import FetchSettings, RecordFetcher
from odradek.admin.records.record_reader import PartitionRange, RecordReader
from odradek.admin.security import WireSecurity
from odradek.admin.wire import SecuredAddress
from odradek.conventions.failures import Failure
from odradek.protocol.compression import Compression
from odradek.protocol.control_records import ControlRecordType, EndTransactionMarker, build_end_transaction_marker
from odradek.protocol.errors import ErrorCode
from odradek.protocol.records import Record, build_batch
from tests.admin.serving import Log, serving
from tests.protocol.malformed_batches import batch as malformed_batch
from tests.protocol.malformed_batches import hostile_batches, malformed_batches

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.admin.records.fetched_batches import FetchedRecord, UnreadableBatch

LIMIT_BYTES = 8 * 1024 * 1024
SETTINGS = FetchSettings(LIMIT_BYTES, max_wait_ms=10)


def good(offset: int, value: bytes = b"good", **fields: Any) -> bytes:
    return bytes(build_batch([Record(offset, 1, None, value)], base_offset=offset, **fields))


def at(offset: int, batch: bytes) -> bytes:
    return struct.pack(">q", offset) + batch[8:]


def read(log: Log) -> tuple[list[FetchedRecord], list[UnreadableBatch]]:
    records: list[FetchedRecord] = []
    unreadable: list[UnreadableBatch] = []
    with serving(log) as cluster:
        whole = [PartitionRange(0, 0, log.end_offset)]
        with RecordReader(
            cluster, {"t": whole}, until_end=True, idle_timeout_ms=20_000, settings=SETTINGS,
            on_unreadable=unreadable.append,
        ) as reader:  # fmt: skip
            for batch in reader.batches():
                records += batch
    return records, unreadable


def fetching(
    cluster: Any, on_unreadable: Callable[[UnreadableBatch], None] = lambda _unreadable: None
) -> closing[RecordFetcher]:
    return closing(RecordFetcher(cluster, SETTINGS, on_unreadable))


def test_trouble_is_reported_once_until_records_arrive(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster: Any = SimpleNamespace(address=lambda *_: None, properties={}, is_stopped=lambda: False)
    troubles: list[str] = []
    fetcher = RecordFetcher(cluster, SETTINGS, lambda _unreadable: None, on_trouble=troubles.append)
    for trouble, records in (("one", []), ("two", []), ("", [good(0)]), ("three", [])):
        monkeypatch.setattr(RecordFetcher, "trouble", trouble)
        monkeypatch.setattr(fetcher, "_read_fetched", lambda _deadline, read=records: (read, False))
        fetcher.poll(0)
    assert troubles == ["one", "three"]


def test_a_corpus_of_malformed_batches_is_named_batch_by_batch() -> None:
    """All those whose frame is intact lie in one partition, with a readable record after each."""
    corpus = [
        (name, batch)
        for name, batch in malformed_batches()
        if len(batch) >= 12 and struct.unpack_from(">i", batch, 8)[0] == len(batch) - 12
    ]
    assert len(corpus) > 180
    batches = []
    for number, (_name, batch) in enumerate(corpus):
        batches += [at(1_000 * number, batch), good(1_000 * number + 500)]
    records, unreadable = read(Log(batches, 1_000 * len(corpus) - 499))
    assert [each.offset() for each in records] == [1_000 * number + 500 for number in range(len(corpus))]
    named = {each.first_offset // 1_000 for each in unreadable}
    assert [name for number, (name, _batch) in enumerate(corpus) if number not in named] == []


@pytest.mark.parametrize(
    ("name", "batch"),
    [
        (name, batch)
        for name, batch in malformed_batches()
        if len(batch) < 12 or struct.unpack_from(">i", batch, 8)[0] != len(batch) - 12
    ],
)
def test_a_batch_without_an_end_ends_the_reading_of_its_partition(name: str, batch: bytes) -> None:
    """Nothing after it can be found. The reading ends with the problem, and not with nothing."""
    log = Log([good(0), at(1, batch)], 2)
    with pytest.raises(Exception, match="t-0") as failed:
        read(log)
    assert failed.typename == "Failure"
    assert log.fetches < 20


def test_hostile_batches_are_read_or_too_large_and_take_little_memory() -> None:
    for name, batch in hostile_batches():
        tracemalloc.start()
        try:
            reader = PartitionReader("t", 0, memoryview(batch), (), LIMIT_BYTES)
            (outcome,) = reader.batches(0)
            _, peak_bytes = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak_bytes < 8 * LIMIT_BYTES, name
        if name.startswith(("bomb", "100,000")):
            assert "too large to show: " in str(outcome.unreadable), name
        else:
            assert outcome.unreadable is None
            ((header_name, _value),) = outcome.records[0].headers()
            assert header_name == "\\xc3(\\xff"


@pytest.mark.parametrize("codec", Compression)
def test_many_small_parts_are_too_large(codec: Compression) -> None:
    """An object of Python takes many times the bytes of a small record."""
    records = [Record(offset, 0, None, None) for offset in range(LIMIT_BYTES // 100)]
    batch = bytes(build_batch(records, compression=codec))
    (outcome,) = PartitionReader("t", 0, memoryview(batch), (), LIMIT_BYTES).batches(0)
    assert "too large to show: the batch has 83,886 records, more than 65,536" in str(outcome.unreadable)


def test_records_of_aborted_transactions_and_markers_are_left_out() -> None:
    def marker(offset: int, kind: ControlRecordType) -> bytes:
        return bytes(build_end_transaction_marker(EndTransactionMarker(7, 0, kind, 0), 0, base_offset=offset))

    batches = [
        good(0, b"aborted", producer_id=7, transactional=True),
        good(1, b"plain"),
        marker(2, ControlRecordType.ABORT),
        good(3, b"committed", producer_id=7, transactional=True),
        marker(4, ControlRecordType.COMMIT),
    ]
    records, unreadable = read(Log(batches, 5, aborted=[(7, 0)]))
    assert ([each.value() for each in records], unreadable) == ([b"plain", b"committed"], [])


@pytest.mark.parametrize("log", [Log([good(0)[:-3]], 1), Log([good(0)], 9)], ids=["a part", "an old batch"])
def test_a_broker_that_repeats_itself_is_given_up(log: Log) -> None:
    began_at = time.monotonic()
    with pytest.raises(Exception, match="without a whole batch"):
        read(log)
    assert log.fetches <= 5
    assert time.monotonic() - began_at < 10


class Unreadable(Log):
    """Batches that cannot be read, at all offsets up to the end: a thousand in each response."""

    def read(self, offset: int) -> bytes:
        return b"".join(at(each, hanging) for each in range(offset, offset + 1_000))


hanging = malformed_batch(b"x", 1, attributes=1)


def test_batches_that_cannot_be_read_end_a_poll_at_its_deadline() -> None:
    with serving(Unreadable([], 10**9)) as cluster, fetching(cluster) as fetcher:
        fetcher.assign([(("t", 0), 0)])
        began_at = time.monotonic()
        assert fetcher.poll(0.2) == []
        assert time.monotonic() - began_at < 2


def test_a_reading_that_is_stopped_ends_among_batches_that_cannot_be_read() -> None:
    with serving(Unreadable([], 10**9)) as cluster, fetching(cluster) as fetcher:
        fetcher.assign([(("t", 0), 0)])
        assert fetcher.poll(0.1) == []
        cluster.is_stopped = lambda: True
        with pytest.raises(Failure, match="stopped"):
            fetcher.poll(60)


def test_a_reading_that_is_stopped_leaves_the_rest_of_a_response_unread() -> None:
    """Many readings end at once when a console stops: a response may have thousands of batches, and large ones."""
    passed_over: list[UnreadableBatch] = []

    def stop(batch: UnreadableBatch) -> None:
        passed_over.append(batch)
        cluster.is_stopped = lambda: True

    with serving(Unreadable([], 10**9)) as cluster, fetching(cluster, stop) as fetcher:
        fetcher.assign([(("t", 0), 0)])
        with pytest.raises(Failure, match="stopped"):
            fetcher.poll(60)
    assert len(passed_over) == 1


def test_a_reader_is_idle_without_a_record_whatever_else_arrives() -> None:
    with (
        serving(Unreadable([], 10**9)) as cluster,
        RecordReader(
            cluster, {"t": [PartitionRange(0, 0, 0)]}, until_end=False, idle_timeout_ms=500, settings=SETTINGS,
            on_unreadable=lambda _unreadable: None,
        ) as reader,
    ):  # fmt: skip
        assert [records for records in reader.batches() if records] == []


def test_properties_that_cannot_be_used_are_a_failure_at_once() -> None:
    cluster = Cluster("127.0.0.1:1", {"security.protocol": "sasl_plaintext", "sasl.mechanisms": "GSSAPI"})
    with pytest.raises(Failure, match="this command logs in with"):
        RecordFetcher(cluster, SETTINGS, lambda _unreadable: None)


@pytest.mark.parametrize("method", ["address", "describe_topic"])
def test_a_refused_connection_is_a_failure_and_not_retried(method: str) -> None:
    def refuse(*_arguments: object) -> None:
        raise BadCredentials("the broker refused the credentials")

    with serving(Log([], 1)) as cluster, fetching(cluster) as fetcher:
        fetcher.assign([(("t", 0), 0)])
        setattr(cluster, method, refuse)
        with pytest.raises(BadCredentials):
            fetcher.poll(5)


def test_a_response_that_is_no_response_is_a_failure_and_not_retried() -> None:
    class Stranger(Log):
        def answer(self, topic: str, wanted: Any) -> Any:
            return SimpleNamespace(encode=lambda _version: [b"HTTP/1.1 400"])

    with serving(Stranger([], 1)) as cluster, fetching(cluster) as fetcher:
        fetcher.assign([(("t", 0), 0)])
        with pytest.raises(Failure, match="a response that cannot be read"):
            fetcher.poll(5)


def corrupt() -> Log:
    log = Log([], 1)
    log.error_code = ErrorCode.CORRUPT_MESSAGE
    return log


def test_the_other_partitions_are_read_when_one_cannot_be() -> None:
    endless = Log([at(0, malformed_batch(b"", 1)[:-3])], 1)
    missing: list[str] = []
    with (
        serving(corrupt(), Log([good(0)], 1), endless) as cluster,
        RecordReader(
            cluster, {"t": [PartitionRange(number, 0, 1) for number in range(3)]}, until_end=True, settings=SETTINGS,
            on_unreadable=lambda unreadable: missing.append(str(unreadable)),
            on_failure=lambda _partition, failure: missing.append(failure.message),
        ) as reader,
    ):  # fmt: skip
        assert [each.partition() for records in reader.batches() for each in records] == [1]
    assert len(missing) == 2
    assert "partition 0" in "".join(missing)
    assert "t-2, offset 0" in "".join(missing)
    assert "cannot be read further" in "".join(missing)


def test_following_ends_when_no_partition_can_be_read() -> None:
    with (
        serving(corrupt(), corrupt()) as cluster,
        RecordReader(
            cluster, {"t": [PartitionRange(0, 0, 1), PartitionRange(1, 0, 1)]}, until_end=False, settings=SETTINGS,
            on_unreadable=lambda _unreadable: None, on_failure=lambda _partition, _failure: None,
        ) as reader,
        pytest.raises(Failure, match="topic t, partition"),
    ):  # fmt: skip
        list(reader.batches())


class Growing(Log):
    """A record at each offset, one in each response."""

    def read(self, offset: int) -> bytes:
        return good(offset)


def test_a_broker_that_does_not_answer_does_not_hold_up_the_others() -> None:
    """It accepts connections, and does not begin TLS. Its trouble lasts while the other one answers."""
    with serving(Log([good(0)], 1), Growing([], 10**9)) as cluster:
        silent = cluster.describe_topic("t").partitions[0].leader.port
        tls = WireSecurity(ssl.create_default_context(), None)
        cluster.address = lambda host, port: SecuredAddress(host, port, tls if port == silent else None)
        with fetching(cluster) as fetcher:
            fetcher.assign([(("t", 0), 0), (("t", 1), 0)])
            began_at = time.monotonic()
            while (fetcher.position(("t", 1)) or 0) < 20:
                fetcher.poll(0.2)
            assert time.monotonic() - began_at < 4
            assert f":{silent}" in fetcher.trouble


def test_a_response_is_not_for_a_partition_that_was_assigned_again() -> None:
    log = Log([good(offset) for offset in range(10)], 10)
    log.may_answer.clear()
    with serving(log) as cluster, fetching(cluster) as fetcher:
        fetcher.assign([(("t", 0), 5)])
        while not log.fetches:
            assert fetcher.poll(0.01) == []
        fetcher.remove([("t", 0)])
        fetcher.assign([(("t", 0), 2)])
        log.may_answer.set()
        offsets: list[int] = []
        while len(offsets) < 8:
            offsets += [each.offset() for each in fetcher.poll(5)]
    assert offsets == [2, 3, 4, 5, 6, 7, 8, 9]


def test_the_records_of_small_batches_come_together_and_before_a_batch_that_cannot_be_read() -> None:
    batches = [good(offset) for offset in range(2_500)]
    batches[2_300] = at(2_300, hanging)
    reported: list[int] = []
    with (
        serving(Log(batches, 2_500)) as cluster,
        fetching(cluster, lambda _unreadable: reported.append(seen)) as fetcher,
    ):
        fetcher.assign([(("t", 0), 0)])
        seen = 0
        sizes = []
        while seen < 2_499:
            records = fetcher.poll(5)
            sizes.append(len(records))
            seen += len(records)
    assert (sizes, reported) == ([1_000, 1_000, 300, 199], [2_300])


def test_large_batches_do_not_come_together() -> None:
    batches = [good(offset, bytes(700_000)) for offset in range(4)]
    with serving(Log(batches, 4)) as cluster, fetching(cluster) as fetcher:
        fetcher.assign([(("t", 0), 0)])
        assert [len(fetcher.poll(5)) for _ in range(2)] == [2, 2]


def test_the_end_of_a_partition_ends_one_poll() -> None:
    with serving(Log([], 0)) as cluster, fetching(cluster) as fetcher:
        fetcher.assign([(("t", 0), 0)])
        assert fetcher.poll(5) == []
        assert fetcher.is_at_end(("t", 0))
        began_at = time.monotonic()
        assert fetcher.poll(0.3) == []
        assert time.monotonic() - began_at >= 0.3


def test_offsets_are_looked_up_and_the_client_id_is_that_of_the_properties() -> None:
    log = Log([good(0), good(1)], 2)
    with serving(log) as cluster:
        cluster.properties["client.id"] = "auditor"
        with fetching(cluster) as fetcher:
            fetcher.assign([(("t", 0), EARLIEST)])
            assert [each.offset() for each in fetcher.poll(5)] == [0, 1]
            fetcher.assign([(("t", 0), LATEST)])
            assert fetcher.poll(5) == []
            assert fetcher.position(("t", 0)) == 2
    assert log.client_ids == {"auditor"}


class Lagging(Log):
    """Its new leader learns in the third response that the last record is committed."""

    def answer(self, topic: str, wanted: Any) -> Any:
        self.end_offset = self.stable_offset = 2 if self.fetches >= 2 else 1
        return super().answer(topic, wanted)

    def read(self, offset: int) -> bytes:
        return good(offset)


def test_the_end_of_a_range_is_reached_after_a_leader_change() -> None:
    records, _unreadable = read(Lagging([], 2))
    assert [each.offset() for each in records] == [0, 1]


def test_a_log_that_stays_shorter_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_reader, "LAGGING_S", 0.1)

    class Truncated(Log):
        def answer(self, topic: str, wanted: Any) -> Any:
            self.end_offset = self.stable_offset = 1
            return super().answer(topic, wanted)

    with pytest.raises(Failure, match="t-0 ends at offset 1, and not at 2"):
        read(Truncated([good(0)], 2))


def test_an_open_transaction_ends_a_reading_before_its_range() -> None:
    log = Log([good(0), good(1)], 2)
    log.stable_offset = 1
    log.read = good  # type: ignore[method-assign]  # any offset has a record
    records, _unreadable = read(log)
    assert [each.offset() for each in records] == [0]
