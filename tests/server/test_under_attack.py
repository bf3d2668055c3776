"""How long others wait while a peer attacks: the 99th percentile of small Produce requests, by kind of attack.

It is printed, to be compared with `none`, because the attacker needs the processor as well; and it has a limit.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import psutil
import pytest

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.produce import ProduceResponse
from tests.server.conftest import watched_broker
from tests.server.requests import VERSION, batch, create_topic, produce_request
from tests.wire import WireClient, encode_request

if TYPE_CHECKING:
    from collections.abc import Callable

MEASURED_S = 10.0
PAUSE_S = 0.005
MEBIBYTE = 1 << 20
MOST_GROWTH_MB = 16
MOST_P99_MS = 50


def flood(port: int) -> None:
    with contextlib.suppress(OSError), WireClient(port) as visitor:
        visitor.send(b"\0\0")
        visitor.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def array_bomb(port: int) -> None:
    head = struct.pack(">hhih", 3, 12, 1, 1) + b"c" + b"\0"
    body = b"\xff\xff\x03" + b"\1" * 64_000
    with contextlib.suppress(OSError), WireClient(port) as attacker:
        attacker.send(struct.pack(">i", len(head) + len(body)) + head + body)
        attacker.is_closed_by_peer()


def many_elements(port: int) -> None:
    from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

    topics = [MetadataRequestTopic(name=f"none-{number}") for number in range(2_000)]
    with contextlib.suppress(OSError, AssertionError), WireClient(port) as attacker:
        attacker.call(MetadataRequest(topics=topics, allow_auto_topic_creation=False), MetadataResponse, 12)


def decompression_bomb(port: int) -> None:
    from odradek.protocol.compression import Compression
    from tests.server.test_hostile_peers import bomb, produce_as

    records = bomb(Compression.GZIP, 100 * MEBIBYTE)
    with contextlib.suppress(OSError, AssertionError), WireClient(port) as attacker:
        for _ in range(20):
            produce_as(attacker, "attacker", "compacted", records)


def many_records(port: int) -> None:
    """Valid batches with as many records as fit one, which all have to be read."""
    from odradek.protocol.compression import Compression
    from odradek.protocol.records import Record, build_batch
    from tests.server.test_hostile_peers import produce_as

    records = build_batch([Record(each, 1_000, b"k", b"") for each in range(100_000)], compression=Compression.ZSTD)
    with contextlib.suppress(OSError, AssertionError), WireClient(port) as attacker:
        for _ in range(100):
            produce_as(attacker, "attacker", "compacted", records)


def recompression(port: int) -> None:
    """Valid batches that the broker has to compress again, with the slowest codec."""
    import random

    from odradek.protocol.records import Record, build_batch
    from tests.server.test_hostile_peers import produce_as

    records = build_batch([Record(0, 1_000, b"k", random.Random(1).randbytes(900_000))])
    with contextlib.suppress(OSError, AssertionError), WireClient(port) as attacker:
        for _ in range(100):
            produce_as(attacker, "attacker", "recompressed", records)


def push_forever(port: int, metrics: bytes, compression: int) -> None:
    """Each push has an instance id of its own, so that no interval holds it back."""
    from uuid import UUID

    from odradek.protocol.messages.get_telemetry_subscriptions import (
        GetTelemetrySubscriptionsRequest,
        GetTelemetrySubscriptionsResponse,
    )
    from odradek.protocol.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse

    with contextlib.suppress(OSError, AssertionError), WireClient(port) as attacker:
        while True:
            ask = GetTelemetrySubscriptionsRequest(client_instance_id=UUID(int=0))
            given = attacker.call(ask, GetTelemetrySubscriptionsResponse)
            push = PushTelemetryRequest(
                client_instance_id=given.client_instance_id,
                subscription_id=given.subscription_id,
                compression_type=compression,
                metrics=metrics,
            )
            attacker.call(push, PushTelemetryResponse)


def telemetry_bomb(port: int) -> None:
    import gzip

    push_forever(port, gzip.compress(bytes(100 * MEBIBYTE)), 1)


def largest_telemetry(port: int) -> None:
    from tests.telemetry.otlp_data import counter, metrics_data

    push_forever(
        port,
        metrics_data(
            *(counter(f"metric.{number}", number, first="v" * 100, second="v" * 100) for number in range(600))
        ),
        0,
    )


def declared_megabytes(port: int) -> None:
    with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
        liars = [stack.enter_context(WireClient(port)) for _ in range(16)]
        for liar in liars:
            liar.send(struct.pack(">i", 100 * MEBIBYTE))
        for _ in range(20):
            for liar in liars:
                liar.send(bytes(4_000))


ATTACKS: dict[str, Callable[[int], None]] = {
    each.__name__: each
    for each in (
        flood,
        array_bomb,
        many_elements,
        decompression_bomb,
        many_records,
        recompression,
        telemetry_bomb,
        largest_telemetry,
        declared_megabytes,
    )
}


@pytest.mark.soak
@pytest.mark.timeout(300)
@pytest.mark.parametrize("attack", ["none", *ATTACKS])
def test_others_are_served_quickly_while_a_peer_attacks(attack: str) -> None:
    with watched_broker() as broker, WireClient(broker.port) as other:
        create_topic(other, "quiet")
        create_topic(other, "compacted", cleanup_policy="compact")
        create_topic(other, "recompressed", compression_type="gzip", retention_bytes="100000000")
        process = psutil.Process(broker.pid)
        frame = encode_request(produce_request("quiet", batch()), VERSION)
        waits = []
        memory = process.memory_info().rss
        command = [sys.executable, "-m", "tests.server.test_under_attack", attack, str(broker.port)]
        attacker = subprocess.Popen(command) if attack != "none" else None
        try:
            began = time.monotonic()
            while time.monotonic() - began < MEASURED_S:
                sent = time.monotonic()
                other.send(frame)
                answer = other.read_frame()
                waits.append((time.monotonic() - sent) * 1000)
                assert answer is not None
                assert attacker is None or attacker.poll() is None, "the attack goes on"
                time.sleep(PAUSE_S)  # a poll's pause
        finally:
            if attacker is not None:
                attacker.kill()
                attacker.wait()
        grown = (process.memory_info().rss - memory) / MEBIBYTE
        assert (
            other.call(produce_request("quiet", batch()), ProduceResponse, VERSION)
            .responses[0]
            .partition_responses[0]
            .error_code
            == ErrorCode.NONE
        )
    p99 = sorted(waits)[int(len(waits) * 0.99)]
    print(f"{attack}: p99 {p99:.1f} ms of {len(waits)} requests, memory grew by {grown:.1f} MB")
    assert grown < MOST_GROWTH_MB
    assert p99 < MOST_P99_MS


if __name__ == "__main__":
    while True:
        ATTACKS[sys.argv[1]](int(sys.argv[2]))
