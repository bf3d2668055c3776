"""Stopping: what is in flight is answered, what was acknowledged is there again, however the end came."""

import os
import signal
import time
from pathlib import Path

import pytest

from odradek.protocol.batch import read_batch_header
from odradek.protocol.messages.fetch import FetchResponse
from odradek.server.listener import RESPONSES_NOT_READ
from odradek.testing import RunningBroker
from tests.server.conftest import watched_broker
from tests.server.process import broker_process
from tests.server.requests import (
    VERSION,
    batch,
    create_topic,
    end_offset,
    fetch,
    fetch_request,
    greet,
    produce,
    records_of,
)
from tests.wire import WireClient, decode_response, encode_request

LOCAL = "PLAINTEXT://127.0.0.1:0"
MARK = ".kafka_cleanshutdown"
MEBIBYTE = 1 << 20
POLL_MS = 60_000


def base_offsets(records: bytes) -> list[int]:
    found, position = [], 0
    while position < len(records):
        header = read_batch_header(records, position)
        found.append(header.base_offset)
        position += header.size_bytes
    return found


# --- in order


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_answers_what_waits_and_leaves_the_mark(tmp_path: Path, number: signal.Signals) -> None:
    """On two listeners: no request may begin to wait on the second while the first is being closed."""
    with broker_process(
        is_fork=False,
        listeners="A://127.0.0.1:0,B://127.0.0.1:0",
        listener_security_protocol_map="A:PLAINTEXT,B:PLAINTEXT",
        log_dirs=f"{tmp_path}/data",
        inter_broker_listener_name="A",
    ) as broker:
        addresses = broker.wait_until_ready()
        polls = [WireClient(port, host) for host, port in addresses for _ in range(3)]
        create_topic(polls[0], "t")
        for client in polls:
            client.send(encode_request(fetch_request("t", max_wait_ms=POLL_MS), VERSION))
        for host, port in addresses:
            with WireClient(port, host) as other:
                greet(other)
        began = time.monotonic()
        broker.process.send_signal(number)
        for client in polls:
            frame = client.read_frame()
            assert frame is not None, "a request in flight is answered"
            assert records_of(decode_response(FetchResponse, frame, VERSION)) == b""
            assert client.is_closed_by_peer()
            client.close()
        assert broker.wait() == 0
        assert time.monotonic() - began < POLL_MS / 1000 / 2
        assert (tmp_path / "data" / MARK).exists()
        assert "Traceback" not in broker.stderr
        assert number.name in broker.stderr


def test_a_stop_lets_a_slow_reader_have_its_answer(tmp_path: Path) -> None:
    with broker_process(listeners=LOCAL, log_dirs=f"{tmp_path}/data") as broker:
        (host, port), *_ = broker.wait_until_ready()
        with WireClient(port, host) as client:
            create_topic(client, "large", max_message_bytes=str(2 * MEBIBYTE))
            for _ in range(16):
                produce(client, "large", os.urandom(MEBIBYTE))
            client.send(encode_request(fetch_request("large"), VERSION))
            assert client.socket.recv(1)
            with WireClient(port, host) as other:
                greet(other)
            broker.process.terminate()
            rest = 1
            while piece := client.socket.recv(65_536):
                rest += len(piece)
            assert rest > 16 * MEBIBYTE
        assert broker.wait() == 0
        assert (tmp_path / "data" / MARK).exists()


def test_a_second_signal_ends_it_at_once(tmp_path: Path) -> None:
    """The first waits for a client that does not read its answer."""
    with broker_process(listeners=LOCAL, log_dirs=f"{tmp_path}/data") as broker:
        (host, port), *_ = broker.wait_until_ready()
        with WireClient(port, host) as deaf, WireClient(port, host) as client:
            create_topic(client, "large", max_message_bytes=str(2 * MEBIBYTE))
            for _ in range(16):
                produce(client, "large", os.urandom(MEBIBYTE))
            deaf.send(encode_request(fetch_request("large"), VERSION))
            greet(client)
            broker.process.terminate()
            assert client.is_closed_by_peer(), "the first signal is being heeded"
            broker.process.terminate()
            assert broker.wait() == 128 + signal.SIGTERM, "it did not wait for the client to the end"
            assert RESPONSES_NOT_READ not in broker.stderr
    assert not (tmp_path / "data" / MARK).exists(), "what was not flushed must be recovered"
    with broker_process(listeners=LOCAL, log_dirs=f"{tmp_path}/data") as broker:
        (host, port), *_ = broker.wait_until_ready()
        with WireClient(port, host) as client:
            assert end_offset(client, "large") == 16


def test_no_listener_takes_requests_while_another_is_being_closed(tmp_path: Path) -> None:
    """The first one waits for a client that does not read; a consumer at the second is not to be kept waiting."""
    with broker_process(
        listeners="A://127.0.0.1:0,B://127.0.0.1:0",
        listener_security_protocol_map="A:PLAINTEXT,B:PLAINTEXT",
        log_dirs=f"{tmp_path}/data",
        inter_broker_listener_name="A",
    ) as broker:
        (host, first), (_, second) = broker.wait_until_ready()
        with WireClient(first, host) as deaf, WireClient(second, host) as consumer:
            create_topic(consumer, "large", max_message_bytes=str(2 * MEBIBYTE))
            for _ in range(16):
                produce(consumer, "large", os.urandom(MEBIBYTE))
            deaf.send(encode_request(fetch_request("large"), VERSION))
            greet(consumer)
            consumer.send(encode_request(fetch_request("large", 16, max_wait_ms=POLL_MS), VERSION))
            with WireClient(second, host) as other:
                greet(other)
            broker.process.terminate()
            assert consumer.read_frame() is not None
            assert consumer.is_closed_by_peer()
            assert deaf.read_frame() is not None, "the consumer was answered only when the first was given up"


def test_an_idle_broker_stops_in_no_time(tmp_path: Path) -> None:
    with broker_process(listeners=LOCAL, log_dirs=f"{tmp_path}/data") as broker:
        (host, port), *_ = broker.wait_until_ready()
        clients = [WireClient(port, host) for _ in range(50)]
        greet(clients[-1])
        broker.process.terminate()
        assert broker.wait() == 0
        assert RESPONSES_NOT_READ not in broker.stderr, "it waits for no client"
        for client in clients:
            assert client.is_closed_by_peer()
            client.close()


def test_acknowledged_records_survive_restarts() -> None:
    with watched_broker() as broker:
        with WireClient(broker.port) as client:
            create_topic(client, "t", 3)
        for life in range(3):
            with WireClient(broker.port) as client:
                for partition in range(3):
                    assert produce(client, "t", b"%d" % life, partition=partition) == life
            broker.restart()
        with WireClient(broker.port) as client:
            assert base_offsets(fetch(client, "t")) == [0, 1, 2]


def test_a_restart_with_many_partitions_is_quick() -> None:
    with watched_broker() as broker:
        with WireClient(broker.port) as client:
            for number in range(3):
                create_topic(client, f"t{number}", 100)
                produce(client, f"t{number}", partition=99)
        began = time.monotonic()
        broker.restart()
        assert time.monotonic() - began < 30
        with WireClient(broker.port) as client:
            assert [end_offset(client, f"t{number}", 99) for number in range(3)] == [1] * 3


# --- crashes


def newest_segment(broker: RunningBroker, topic: str) -> Path:
    return max(Path(broker.data_directory, f"{topic}-0").glob("*.log"))


def test_acknowledged_records_survive_a_kill() -> None:
    """The page cache outlives the process."""
    with watched_broker() as broker:
        with WireClient(broker.port) as client:
            create_topic(client, "t")
            for number in range(200):
                produce(client, "t", b"%d" % number)
        broker.kill()
        assert not Path(broker.data_directory, MARK).exists()
        broker.start()
        with WireClient(broker.port) as client:
            assert base_offsets(fetch(client, "t")) == list(range(200))
            assert produce(client, "t") == 200


@pytest.mark.parametrize(
    "garbage",
    [b"\0" * 4096, b"\xff" * 100, bytes(batch(b"torn"))[:-5], bytes(batch(b"bad"))[:-1] + b"\x7f", b"x"],
    ids=["zeros", "ones", "half a batch", "a wrong checksum", "a byte"],
)
def test_a_torn_tail_is_cut_off(garbage: bytes) -> None:
    with watched_broker() as broker:
        with WireClient(broker.port) as client:
            create_topic(client, "t")
            for number in range(5):
                produce(client, "t", b"%d" % number)
            expected = fetch(client, "t")
        broker.kill()
        segment = newest_segment(broker, "t")
        with segment.open("ab") as file:
            file.write(garbage)
        broker.start()
        assert segment.stat().st_size == len(expected)
        with WireClient(broker.port) as client:
            assert fetch(client, "t") == expected
            assert produce(client, "t", b"next") == 5
            assert base_offsets(fetch(client, "t")) == [0, 1, 2, 3, 4, 5]


def test_a_kill_in_the_middle_of_much_loses_nothing_acknowledged() -> None:
    """Several times over, with small segments that roll and a producer that never stops."""
    with watched_broker() as broker:
        with WireClient(broker.port) as client:
            create_topic(client, "t", segment_bytes="1048576")
        acknowledged = 0
        for _ in range(3):
            with WireClient(broker.port) as client:
                for _ in range(150):
                    assert produce(client, "t", os.urandom(10_000)) == acknowledged
                    acknowledged += 1
            broker.kill()
            broker.start()
            with WireClient(broker.port) as client:
                assert end_offset(client, "t") == acknowledged


def test_a_recreated_topic_survives_a_kill() -> None:
    from odradek.protocol.messages.delete_records import (
        DeleteRecordsPartition,
        DeleteRecordsRequest,
        DeleteRecordsResponse,
        DeleteRecordsTopic,
    )
    from odradek.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse

    with watched_broker() as broker:
        with WireClient(broker.port) as client:
            create_topic(client, "t")
            for _ in range(20):
                produce(client, "t")
            asked = DeleteRecordsTopic(name="t", partitions=[DeleteRecordsPartition(partition_index=0, offset=20)])
            client.call(DeleteRecordsRequest(topics=[asked], timeout_ms=1000), DeleteRecordsResponse)
            client.call(DeleteTopicsRequest(topic_names=["t"]), DeleteTopicsResponse, 4)
            create_topic(client, "t")
            for _ in range(5):
                produce(client, "t", b"precious")
        broker.kill()
        broker.start()
        with WireClient(broker.port) as client:
            assert base_offsets(fetch(client, "t")) == [0, 1, 2, 3, 4]
