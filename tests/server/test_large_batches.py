"""Batches that a worker converts, over real sockets: their order, refusals, and connections that end."""

import pytest

from odradek.log.batch_conversion import EVENT_LOOP_BYTES
from odradek.protocol.compression import Compression
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import FetchResponse
from odradek.protocol.messages.produce import PartitionProduceData, ProduceResponse
from odradek.protocol.records import Record, build_batch, read_records
from odradek.testing import RunningBroker
from tests.server.requests import VERSION, create_topic, end_offset, fetch_request, produce_request, records_of
from tests.waiting import eventually
from tests.wire import WireClient, decode_response, encode_request

LARGE = bytes(2 * EVENT_LOOP_BYTES)
REQUESTS = 20


def numbered(number: int, *, is_large: bool, key: bytes | None = b"key") -> bytearray:
    codec = Compression.ZSTD if number % 3 else Compression.NONE
    value = b"%d " % number + (LARGE if is_large else b"")
    return build_batch([Record(0, 1_000, key, value)], compression=codec)


def numbers_in(client: WireClient, topic: str, partition: int = 0) -> list[int]:
    found: list[int] = []
    while True:
        request = fetch_request(topic, len(found), partition=partition)
        records = records_of(client.call(request, FetchResponse, VERSION))
        if not records:
            return found
        data, position = memoryview(records), 0
        while position < len(data):
            size_bytes = 12 + int.from_bytes(data[position + 8 : position + 12], "big")
            for record in read_records(data[position : position + size_bytes], 1 << 24):
                assert record.value is not None
                found.append(int(record.value.split(b" ")[0]))
            position += size_bytes


@pytest.mark.parametrize("settings", [{"compression_type": "gzip"}, {"cleanup_policy": "compact"}], ids=str)
def test_requests_of_a_connection_are_appended_in_their_order(
    client: WireClient, running: RunningBroker, settings: dict[str, str]
) -> None:
    topic = "ordered-" + "-".join(settings)
    create_topic(client, topic, 1, **settings)
    with WireClient(running.port) as sender:
        for number in range(REQUESTS):
            batch = numbered(number, is_large=number % 2 == 0)
            sender.send(encode_request(produce_request(topic, batch), VERSION, number))
        for number in range(REQUESTS):
            frame = sender.read_frame()
            assert frame is not None
            assert int.from_bytes(frame[:4], "big") == number
            answer = decode_response(ProduceResponse, frame, VERSION).responses[0].partition_responses[0]
            assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, number)
    assert numbers_in(client, topic) == list(range(REQUESTS))


def test_partition_that_a_request_names_again_is_appended_to_in_order(client: WireClient) -> None:
    create_topic(client, "repeated", partitions=2, compression_type="gzip")
    request = produce_request("repeated", numbered(0, is_large=True))
    named = ((0, 1, False), (1, 2, False), (0, 3, True))
    request.topic_data[0].partition_data += [
        PartitionProduceData(index=index, records=memoryview(numbered(number, is_large=is_large)))
        for index, number, is_large in named
    ]
    answers = client.call(request, ProduceResponse, VERSION).responses[0].partition_responses
    assert [(each.index, each.error_code, each.base_offset) for each in answers] == [
        (0, 0, 0),
        (0, 0, 1),
        (1, 0, 0),
        (0, 0, 2),
    ]
    assert numbers_in(client, "repeated") == [0, 1, 3]
    assert numbers_in(client, "repeated", 1) == [2]


def test_client_that_waits_for_nothing_and_closes_loses_nothing(client: WireClient, running: RunningBroker) -> None:
    create_topic(client, "unacknowledged", compression_type="zstd")
    with WireClient(running.port) as sender:
        frames = [
            encode_request(produce_request("unacknowledged", numbered(number, is_large=True), acks=0), VERSION)
            for number in range(REQUESTS)
        ]
        sender.send(b"".join(frames))
    eventually(lambda: end_offset(client, "unacknowledged") == REQUESTS, "the append")
    assert numbers_in(client, "unacknowledged") == list(range(REQUESTS))


def test_large_batch_without_keys_is_refused_with_the_reason(client: WireClient) -> None:
    create_topic(client, "keys", cleanup_policy="compact")
    for is_large in (False, True):
        request = produce_request("keys", numbered(1, is_large=is_large, key=None))
        answer = client.call(request, ProduceResponse, VERSION).responses[0].partition_responses[0]
        assert answer.error_code == ErrorCode.INVALID_RECORD
        assert answer.error_message == "record 0 of the batch: no key, in a topic that is compacted by key"
    assert end_offset(client, "keys") == 0
