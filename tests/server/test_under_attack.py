"""How long others wait while a peer attacks: the 99th percentile of small Produce requests, by kind of attack.

It is printed and not asserted, because the attacker needs the processor as well: compare it with `none`.
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


def declared_megabytes(port: int) -> None:
    with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
        liars = [stack.enter_context(WireClient(port)) for _ in range(16)]
        for liar in liars:
            liar.send(struct.pack(">i", 100 * MEBIBYTE))
        for _ in range(20):
            for liar in liars:
                liar.send(bytes(4_000))


ATTACKS: dict[str, Callable[[int], None]] = {
    each.__name__: each for each in (flood, array_bomb, many_elements, decompression_bomb, declared_megabytes)
}


@pytest.mark.soak
@pytest.mark.timeout(300)
@pytest.mark.parametrize("attack", ["none", *ATTACKS])
def test_others_are_served_quickly_while_a_peer_attacks(attack: str) -> None:
    with watched_broker() as broker, WireClient(broker.port) as other:
        create_topic(other, "quiet")
        create_topic(other, "compacted", cleanup_policy="compact")
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


if __name__ == "__main__":
    while True:
        ATTACKS[sys.argv[1]](int(sys.argv[2]))
