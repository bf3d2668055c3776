"""Where records must be looked at: keys of compacted topics, and another codec than the producer's."""

import struct
import subprocess
import sys
from dataclasses import replace

import hypothesis.strategies as st
import pytest
from hypothesis import given

from odradek.log.append_result import CONVERT_FIRST, AppendResult
from odradek.log.batch_conversion import (
    EVENT_LOOP_BYTES,
    EVENT_LOOP_RECORDS,
    NOT_CONVERTED,
    SMALLEST_CHARGE_BYTES,
    EventLoopBudget,
    convert_at_append,
    convert_batch,
    convert_on_worker,
    largest_record_count,
)
from odradek.log.log_config import LogConfig, ProduceValidation
from odradek.protocol.batch import (
    HEADER_SIZE_BYTES,
    BatchHeader,
    has_valid_checksum,
    read_batch_header,
    replace_records,
)
from odradek.protocol.compression import Compression, compress
from odradek.protocol.errors import ErrorCode
from odradek.protocol.malformed import MalformedMessage
from odradek.protocol.record_checks import check_records
from odradek.protocol.records import RECORDS_BETWEEN_PAUSES, Record, build_batch, read_records
from tests.log.batches import make_batch

BOUNDED = LogConfig()
COMPLETE = LogConfig(produce_validation=ProduceValidation.COMPLETE)
HEADER_ALONE = LogConfig(produce_validation=ProduceValidation.HEADER)
NAMES = {
    "uncompressed": Compression.NONE,
    "gzip": Compression.GZIP,
    "snappy": Compression.SNAPPY,
    "lz4": Compression.LZ4,
    "zstd": Compression.ZSTD,
}


@pytest.mark.parametrize("source", Compression)
@pytest.mark.parametrize("target", NAMES)
def test_records_survive_another_codec(source: Compression, target: str) -> None:
    values = [b"a" * 1000, b"b"]
    batch = make_batch(values, compression=source, producer=(3, 1, 7))
    header = read_batch_header(batch)
    converted = convert_batch(batch, header, LogConfig(compression_type=target))
    assert isinstance(converted, memoryview)
    new_header = read_batch_header(converted)
    assert new_header.compression is NAMES[target]
    assert has_valid_checksum(converted, 0, new_header)
    assert [record.value for record in read_records(converted, 1 << 20)] == values
    kept = ("producer_id", "producer_epoch", "base_sequence", "record_count", "max_timestamp", "last_offset_delta")
    assert all(getattr(header, name) == getattr(new_header, name) for name in kept)
    if source is NAMES[target]:
        assert converted is batch


def test_a_batch_that_grows_over_the_limit_is_too_large() -> None:
    batch = make_batch([b"a" * 10_000], compression=Compression.ZSTD)
    config = LogConfig(compression_type="uncompressed", max_message_bytes=5000)
    assert convert_batch(batch, read_batch_header(batch), config) is ErrorCode.MESSAGE_TOO_LARGE
    config = LogConfig(compression_type="uncompressed", segment_bytes=5000)
    assert convert_batch(batch, read_batch_header(batch), config) is ErrorCode.RECORD_LIST_TOO_LARGE


@pytest.mark.parametrize("compression", Compression)
def test_a_compacted_topic_needs_keys(compression: Compression) -> None:
    config = LogConfig(is_compacted=True)
    keyless = make_batch(key=None, compression=compression)
    keyed = make_batch(key=b"", compression=compression)
    assert convert_batch(keyless, read_batch_header(keyless), config) is ErrorCode.INVALID_RECORD
    assert convert_batch(keyed, read_batch_header(keyed), config) is keyed


def test_what_cannot_be_decompressed_is_an_invalid_record() -> None:
    batch = make_batch([b"a" * 1000], compression=Compression.ZSTD)
    batch[70:80] = bytes(10)
    header = read_batch_header(batch)
    assert convert_batch(batch, header, LogConfig(compression_type="gzip")) is ErrorCode.INVALID_RECORD
    assert convert_batch(batch, header, LogConfig(is_compacted=True)) is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("compression", [Compression.GZIP, Compression.LZ4, Compression.ZSTD])
def test_a_small_batch_that_unpacks_to_much_is_refused(compression: Compression) -> None:
    batch = make_batch([bytes(17 << 20)], compression=compression)
    header = read_batch_header(batch)
    assert len(batch) < LogConfig().max_message_bytes
    other = "uncompressed" if compression is Compression.GZIP else "gzip"
    for config in (LogConfig(compression_type=other), LogConfig(is_compacted=True), BOUNDED, COMPLETE):
        assert convert_batch(batch, header, config) is ErrorCode.MESSAGE_TOO_LARGE
    assert convert_batch(batch, header, HEADER_ALONE) is batch, "no conversion is needed"
    larger = LogConfig(is_compacted=True, max_message_bytes=2 << 20)
    assert convert_batch(batch, header, larger) is batch


@pytest.mark.parametrize("declared_bytes", [0, 100, 20 << 20, 1 << 31])
def test_gzip_with_another_size_than_it_declares_is_refused(declared_bytes: int) -> None:
    header = read_batch_header(make_batch([b"v"]))
    packed = compress(Compression.GZIP, records_of([bytes(8 << 20)]))[:-4] + struct.pack("<I", declared_bytes)
    batch = memoryview(replace_records(header, packed, Compression.GZIP))
    allowed = LogConfig(max_message_bytes=20 << 20)
    assert convert_batch(batch, read_batch_header(batch), allowed) is ErrorCode.INVALID_RECORD


# In a process of its own, whose peak is that of one batch: how much memory its check takes.
CHECK = """
import sys
from odradek.log.batch_conversion import convert_batch
from odradek.log.log_config import LogConfig
from odradek.protocol.batch import read_batch_header
from tests.memory import peak_resident_bytes
batch = memoryview(sys.stdin.buffer.read())
header = read_batch_header(batch)
before = peak_resident_bytes()
answer = convert_batch(batch, header, LogConfig(is_compacted=True))
print(answer if answer is not batch else "NONE", peak_resident_bytes() - before)
"""


@pytest.mark.parametrize(
    ("codec", "value_bytes", "most_bytes"),
    [
        (Compression.GZIP, 50 << 20, 2 << 20),
        *[(codec, 15 << 20, 22 << 20) for codec in list(Compression)[1:]],  # zstd: with a window of its own
    ],
)
def test_records_are_in_memory_once_and_too_many_of_gzip_are_not(
    codec: Compression, value_bytes: int, most_bytes: int
) -> None:
    batch = build_batch([Record(0, 1_000, b"k", bytes(value_bytes))], compression=codec)
    assert len(batch) < LogConfig().max_message_bytes
    process = subprocess.run([sys.executable, "-c", CHECK], input=batch, capture_output=True, check=True)
    answer, grown = process.stdout.split()
    assert answer == (b"NONE" if value_bytes < 16 << 20 else b"10"), process.stderr
    assert int(grown) < most_bytes


def test_a_compacted_topic_looks_at_so_many_records_and_no_more() -> None:
    config = LogConfig(is_compacted=True)
    batch = make_batch([b""] * 10, compression=Compression.ZSTD)
    header = read_batch_header(batch)
    assert largest_record_count(config) == config.max_message_bytes // 7
    too_many = header._replace(record_count=largest_record_count(config) + 1)
    assert convert_batch(batch, too_many, config) is ErrorCode.INVALID_RECORD


def with_records(data: bytes, count: int) -> tuple[memoryview, BatchHeader]:
    """A batch of right header and checksum whose compressed records are these bytes."""
    batch = make_batch([b"v"] * count)
    rebuilt = memoryview(replace_records(read_batch_header(batch), compress(Compression.GZIP, data), Compression.GZIP))
    return rebuilt, read_batch_header(rebuilt)


def records_of(values: list[bytes]) -> bytes:
    return bytes(make_batch(values)[HEADER_SIZE_BYTES:])


@pytest.mark.parametrize(
    ("data", "count"),
    [
        (b"these bytes are no records", 1),
        (records_of([b"v"]) + b"more", 1),
        (records_of([b"v"]), 2),
        (records_of([b"v", b"v"]), 1),
        (records_of([b"v"]) * 2, 2),  # the offset delta does not rise
        (records_of([b"v"])[:-1] + b"\x02", 1),  # a header that does not fit
    ],
)
def test_another_codec_needs_valid_records(data: bytes, count: int) -> None:
    """Kafka's LogValidator reads each record when it compresses a batch again."""
    batch, header = with_records(data, count)
    assert convert_batch(batch, header, LogConfig(compression_type="zstd")) is ErrorCode.INVALID_RECORD
    assert convert_batch(batch, header, COMPLETE) is ErrorCode.INVALID_RECORD
    assert convert_batch(batch, header, replace(HEADER_ALONE, compression_type="gzip")) is batch


@pytest.mark.parametrize("codec", list(Compression)[1:])
def test_compressed_records_are_decompressed_and_the_first_is_checked(codec: Compression) -> None:
    def convert(records: bytes, count: int, config: LogConfig = BOUNDED) -> memoryview | ErrorCode:
        header = read_batch_header(make_batch([b"v"] * count))
        batch = memoryview(replace_records(header, records, codec))
        return convert_batch(batch, read_batch_header(batch), config)

    many = records_of([b"value %d" % index for index in range(1_000)])
    whole = compress(codec, many)
    assert isinstance(convert(whole, 1_000), memoryview)
    assert isinstance(convert(whole, 1_000, COMPLETE), memoryview)
    damaged = [b"", b"x", whole[:-9], whole[: len(whole) // 2] + bytes(len(whole) - len(whole) // 2)]
    too_few, too_many = compress(codec, many[: len(many) // 2]), compress(codec, many * 2)
    for records, count in [*((each, 1_000) for each in damaged), (too_few, 2_000), (too_many, 1)]:
        assert convert(records, count) is ErrorCode.INVALID_RECORD
        assert convert(records, count, COMPLETE) is ErrorCode.INVALID_RECORD
        assert isinstance(convert(records, count, HEADER_ALONE), memoryview)


@pytest.mark.parametrize("codec", [Compression.GZIP, Compression.LZ4])
def test_compressed_records_are_one_frame(codec: Compression) -> None:
    header = read_batch_header(make_batch([b"v"] * 3))
    frames = compress(codec, b"") + compress(codec, records_of([b"v"] * 3))
    batch = memoryview(replace_records(header, frames, codec))
    for config in (BOUNDED, COMPLETE, LogConfig(compression_type="zstd")):
        assert convert_batch(batch, read_batch_header(batch), config) is ErrorCode.INVALID_RECORD
        answer = convert_at_append(batch, read_batch_header(batch), config, EventLoopBudget())
        assert answer is CONVERT_FIRST, "a worker finds out what is wrong"
    assert convert_batch(batch, read_batch_header(batch), HEADER_ALONE) is batch


@pytest.mark.parametrize(("config", "fits"), [("bounded", False), ("header", True)])
def test_only_validation_waits_for_a_worker_if_the_batch_is_large(config: str, fits: bool) -> None:
    batch = make_batch([b"v" * EVENT_LOOP_BYTES], compression=Compression.LZ4)
    header = read_batch_header(batch)
    log_config = LogConfig(produce_validation=ProduceValidation(config))
    result = convert_at_append(batch, header, log_config, EventLoopBudget())
    assert (result is batch) is fits
    converted = convert_on_worker(batch, log_config, lambda: None)
    assert convert_at_append(batch, header, log_config, converted) is batch


def test_many_records_that_are_only_decompressed_do_not_wait_for_a_worker() -> None:
    batch = make_batch([b""] * (EVENT_LOOP_RECORDS + 1), compression=Compression.LZ4)
    assert convert_at_append(batch, read_batch_header(batch), BOUNDED, EventLoopBudget()) is batch
    assert convert_at_append(batch, read_batch_header(batch), COMPLETE, EventLoopBudget()) is CONVERT_FIRST


@given(st.lists(st.tuples(st.none() | st.binary(max_size=9), st.none() | st.binary(max_size=200)), min_size=1))
def test_valid_records_are_accepted(pairs: list[tuple[bytes | None, bytes | None]]) -> None:
    batch = build_batch([Record(index, 1000 + index, *pair, [("h", b"x")]) for index, pair in enumerate(pairs)])
    records = bytes(batch[HEADER_SIZE_BYTES:])
    check_records(records, len(pairs))
    check_records(records.replace(b"\x02h", b"\x02\xff"), len(pairs))  # no UTF-8: Kafka stores it
    with pytest.raises(MalformedMessage):
        check_records(records[:-1], len(pairs))


@st.composite
def sent_batches(draw: st.DrawFn) -> bytearray:
    """Batches on both sides of what is read on the event loop; some have a record without a key, or are damaged."""
    count = draw(st.sampled_from((1, 3, EVENT_LOOP_RECORDS, EVENT_LOOP_RECORDS + 1, 1_200)))
    value = draw(st.sampled_from((b"", b"v" * 20, b"v" * 300, bytes(EVENT_LOOP_BYTES))))[: (1 << 22) // count]
    keyless = draw(st.one_of(st.none(), st.integers(0, count - 1)))
    records = [Record(each, 1_000, None if each == keyless else b"%d" % each, value) for each in range(count)]
    batch = build_batch(records, compression=draw(st.sampled_from(Compression)))
    if draw(st.booleans()) and draw(st.booleans()):
        place = draw(st.integers(HEADER_SIZE_BYTES, len(batch) - 1))
        batch[place] ^= 1 << draw(st.integers(0, 7))
    return batch


@given(
    batch=sent_batches(),
    target=st.sampled_from((*NAMES, "producer")),
    is_compacted=st.booleans(),
    max_message_bytes=st.sampled_from((1_000, 100_000, 1 << 20)),
)
def test_worker_and_event_loop_give_the_same_bytes_and_errors(
    batch: bytearray, target: str, is_compacted: bool, max_message_bytes: int
) -> None:
    config = LogConfig(compression_type=target, is_compacted=is_compacted, max_message_bytes=max_message_bytes)
    header, view = read_batch_header(batch), memoryview(batch)
    on_loop = convert_at_append(view, header, config, None)
    pauses = []
    first = convert_at_append(view, header, config, EventLoopBudget())
    if first is CONVERT_FIRST:
        first = convert_at_append(view, header, config, convert_on_worker(view, config, lambda: pauses.append(True)))
    assert first is not CONVERT_FIRST
    if isinstance(on_loop, AppendResult):
        assert first == on_loop
    else:
        assert not isinstance(first, AppendResult)
        assert bytes(first) == bytes(on_loop)


def test_only_a_small_batch_is_read_on_the_event_loop() -> None:
    config = LogConfig(is_compacted=True)

    def is_deferred(batch: bytearray) -> bool:
        return (
            convert_at_append(memoryview(batch), read_batch_header(batch), config, EventLoopBudget()) is CONVERT_FIRST
        )

    few = [Record(each, 1_000, b"key", b"") for each in range(EVENT_LOOP_RECORDS)]
    assert not is_deferred(build_batch(few))
    assert is_deferred(build_batch([*few, Record(len(few), 1_000, b"key", b"")]))
    assert is_deferred(build_batch([Record(0, 1_000, b"key", bytes(EVENT_LOOP_BYTES))]))
    bomb = build_batch([Record(0, 1_000, b"key", bytes(1 << 20))], compression=Compression.ZSTD)
    assert len(bomb) < EVENT_LOOP_BYTES
    assert is_deferred(bomb)


def test_conversion_for_another_configuration_is_not_used() -> None:
    batch = memoryview(build_batch([Record(0, 1_000, b"key", bytes(EVENT_LOOP_BYTES))]))
    header = read_batch_header(batch)
    earlier, config = LogConfig(compression_type="gzip"), LogConfig(compression_type="zstd")
    conversion = convert_on_worker(batch, earlier, lambda: None)
    assert convert_at_append(batch, header, config, conversion) is CONVERT_FIRST
    assert convert_at_append(batch, header, LogConfig(compression_type="gzip"), conversion) is conversion.batch


def test_worker_pauses_between_runs_of_records() -> None:
    records = [Record(each, 1_000, b"key", b"") for each in range(2 * RECORDS_BETWEEN_PAUSES + 1)]
    pauses: list[bool] = []
    batch = memoryview(build_batch(records))
    convert_on_worker(batch, LogConfig(is_compacted=True), lambda: pauses.append(True))
    assert len(pauses) == 2
    convert_on_worker(batch, LogConfig(compression_type="gzip"), lambda: pauses.append(True))
    assert len(pauses) == 4


@pytest.mark.parametrize("headers_each", [1, 9, 10_000])
def test_worker_pauses_between_runs_of_headers(headers_each: int) -> None:
    header_count = 20 * RECORDS_BETWEEN_PAUSES
    headers = [("", b"")] * headers_each
    records = [Record(each, 1_000, b"key", b"", headers) for each in range(header_count // headers_each)]
    pauses: list[bool] = []
    convert_on_worker(memoryview(build_batch(records)), LogConfig(compression_type="gzip"), lambda: pauses.append(True))
    assert 19 <= len(pauses) <= 2 * (header_count + len(records)) // RECORDS_BETWEEN_PAUSES


def test_headers_count_for_the_budget_of_the_event_loop() -> None:
    config = LogConfig(compression_type="gzip")

    def convert(header_count: int, budget: EventLoopBudget) -> object:
        batch = build_batch([Record(0, 1_000, b"key", b"", [("", b"")] * header_count)])
        return convert_at_append(memoryview(batch), read_batch_header(batch), config, budget)

    budget = EventLoopBudget()
    assert convert(EVENT_LOOP_RECORDS - 1, budget) is not CONVERT_FIRST
    assert convert(0, budget) is CONVERT_FIRST
    budget = EventLoopBudget()
    assert convert(EVENT_LOOP_RECORDS + 1, budget) is CONVERT_FIRST
    assert convert(0, budget) is CONVERT_FIRST


@pytest.mark.parametrize("compression", [Compression.NONE, Compression.ZSTD])
def test_budget_of_the_event_loop_is_one_for_all_batches_of_a_request(compression: Compression) -> None:
    config, budget = LogConfig(compression_type="gzip"), EventLoopBudget()
    batch = memoryview(build_batch([Record(0, 1_000, b"key", b"")], compression=compression))
    header = read_batch_header(batch)
    most = EVENT_LOOP_BYTES // SMALLEST_CHARGE_BYTES
    results = [convert_at_append(batch, header, config, budget) for _ in range(2 * most)]
    assert [each is CONVERT_FIRST for each in results] == [False] * most + [True] * most
    assert convert_at_append(batch, header, HEADER_ALONE, budget) is batch, "no conversion is needed"


def test_batches_of_a_producer_for_six_partitions_are_checked_on_the_event_loop() -> None:
    config, budget = LogConfig(), EventLoopBudget()
    batch = memoryview(build_batch([Record(0, 1_000, b"key", bytes(16_000))], compression=Compression.LZ4))
    for _ in range(6):
        assert convert_at_append(batch, read_batch_header(batch), config, budget) is batch


def test_bomb_uses_the_budget_of_the_event_loop_up() -> None:
    config, budget = LogConfig(compression_type="gzip"), EventLoopBudget()
    bomb = memoryview(build_batch([Record(0, 1_000, b"key", bytes(1 << 20))], compression=Compression.ZSTD))
    assert convert_at_append(bomb, read_batch_header(bomb), config, budget) is CONVERT_FIRST
    assert budget.bytes_left == 0


def test_batch_of_a_deferred_request_is_never_read_on_the_event_loop() -> None:
    batch = memoryview(build_batch([Record(0, 1_000, b"key", b"")]))
    header = read_batch_header(batch)
    assert convert_at_append(batch, header, LogConfig(compression_type="gzip"), NOT_CONVERTED) is CONVERT_FIRST
    assert convert_at_append(batch, header, LogConfig(), NOT_CONVERTED) is batch
