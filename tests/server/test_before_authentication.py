"""Strangers on a SASL listener, on real sockets: small frames, and few of them; authentication lifts both limits."""

import contextlib
import struct
from collections.abc import Iterator

import confluent_kafka
import psutil
import pytest

from odradek.server.connection import LARGEST_FRAME_BEFORE_AUTHENTICATION_BYTES
from tests.server.sasl_broker import ALICE, SaslBroker, sasl_broker
from tests.waiting import eventually
from tests.wire import WireClient

PATIENCE_S = 60
MOST_GROWTH_BYTES = 16 << 20


@pytest.fixture(scope="module")
def guarded() -> Iterator[SaslBroker]:
    with sasl_broker() as running:
        yield running


@pytest.fixture
def stranger(guarded: SaslBroker) -> Iterator[WireClient]:
    with WireClient(guarded.sasl_port) as client:
        client.socket.settimeout(PATIENCE_S)
        yield client


def test_many_strangers_with_incomplete_frames_take_little_memory(guarded: SaslBroker) -> None:
    process = psutil.Process(guarded.process.pid)
    memory = process.memory_info().rss

    def connected() -> set[int]:
        """The ports of clients; those of earlier tests may still be there."""
        return {each.raddr.port for each in process.net_connections("tcp") if each.raddr}

    with contextlib.ExitStack() as stack:
        strangers = [stack.enter_context(WireClient(guarded.sasl_port)) for _ in range(200)]
        ports = {each.socket.getsockname()[1] for each in strangers}
        for each in strangers:
            each.send(struct.pack(">i", LARGEST_FRAME_BEFORE_AUTHENTICATION_BYTES) + bytes(10_000))
        eventually(lambda: ports <= connected(), "their connections")
        assert process.memory_info().rss - memory < MOST_GROWTH_BYTES
    eventually(lambda: not ports & connected(), "the end of their connections")


def test_a_client_that_is_authenticated_sends_large_frames(guarded: SaslBroker) -> None:
    settings = guarded.client("PLAIN", ALICE["sasl.username"], ALICE["sasl.password"])
    producer = confluent_kafka.Producer({**settings, "log_level": 0})
    errors: list[object] = []
    for _ in range(5):
        producer.produce("large", bytes(900_000), on_delivery=lambda error, _: errors.append(error))
        assert producer.flush(PATIENCE_S) == 0
    assert errors == [None] * 5
