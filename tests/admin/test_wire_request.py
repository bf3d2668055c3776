"""One request over a plain socket: answers, refusals, and peers that are no brokers."""

from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING

import pytest

from odradek.admin.wire import KeptConnections, SecuredAddress
from odradek.conventions.addresses import split_addresses
from odradek.conventions.failures import Failure
from odradek.protocol.messages.metadata import MetadataRequest, MetadataResponse

if TYPE_CHECKING:
    from collections.abc import Iterator

REQUEST = MetadataRequest(topics=[])


@pytest.fixture
def silent_peer() -> Iterator[socket.socket]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener


def answer_with(listener: socket.socket, data: bytes) -> threading.Thread:
    def serve() -> None:
        connection, _address = listener.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(data)

    thread = threading.Thread(target=serve)
    thread.start()
    return thread


def ask(address: tuple[str, int]) -> MetadataResponse:
    return KeptConnections()(SecuredAddress(*address, None), REQUEST, MetadataResponse, 1, timeout_s=1.0)


def test_a_broker_answers(bootstrap_server: str) -> None:
    assert ask(split_addresses(bootstrap_server)[0]).brokers


def test_an_address_without_a_broker_is_a_failure() -> None:
    with pytest.raises(Failure, match=r"no response from 127\.0\.0\.1:1"):
        ask(("127.0.0.1", 1))


@pytest.mark.parametrize(("data", "text"), [(b"", "closed the connection"), (b"HTTP/1.1 400\r\n", "a Kafka broker?")])
def test_a_peer_that_is_no_broker_is_a_failure(silent_peer: socket.socket, data: bytes, text: str) -> None:
    thread = answer_with(silent_peer, data)
    with pytest.raises(Failure, match=text.replace("?", r"\?")):
        ask(silent_peer.getsockname())
    thread.join()
