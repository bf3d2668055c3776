"""Answers on their way out: who sends a lot steps back when others are there, and only then."""

import asyncio
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek.host import network
from odradek.host.network import SocketWriter, Turns
from odradek.host.real_disk import RealFile
from odradek.host.slices import FileSlice

LONG_S = 60
ANSWER_BYTES = 4 * network.BURST_BYTES


class Transport(asyncio.BaseTransport):
    """All that a writer asks of one: its socket."""


@pytest.fixture
def answer(tmp_path: Path) -> FileSlice:
    path = tmp_path / "records"
    path.write_bytes(bytes(ANSWER_BYTES))
    return FileSlice(RealFile(os.open(path, os.O_RDONLY)), 0, ANSWER_BYTES)


class Peer:
    """Takes whatever comes."""

    def __init__(self, connection: socket.socket) -> None:
        self.received_bytes = 0
        self.connection = connection
        self.thread = threading.Thread(target=self._receive)
        self.thread.start()

    def _receive(self) -> None:
        while data := self.connection.recv(1 << 16):
            self.received_bytes += len(data)


@pytest.fixture
def pair() -> Iterator[tuple[Transport, Peer]]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        ours = socket.create_connection(server.getsockname())
        theirs, _ = server.accept()
    ours.setblocking(False)
    peer = Peer(theirs)
    yield Transport({"socket": ours}), peer
    ours.close()
    peer.thread.join(LONG_S)
    theirs.close()


async def send(transport: Transport, answer: FileSlice, *, others_are_there: bool) -> None:
    """Until everything is out or, if that is long, until the writer rests."""
    is_over = asyncio.Event()
    turns = Turns()

    def progress() -> None:
        turns.short_answers += others_are_there
        if writer.is_drained or (writer.is_resting and network.REST_S == LONG_S):
            is_over.set()

    def fail(problem: OSError) -> None:
        raise problem

    writer = SocketWriter(transport, asyncio.get_running_loop(), turns, progress, fail)
    writer.write([answer])
    await asyncio.wait_for(is_over.wait(), LONG_S)
    writer.close()


def sent_bytes(pair: tuple[Transport, Peer], answer: FileSlice, *, others_are_there: bool) -> int:
    transport, peer = pair
    asyncio.run(send(transport, answer, others_are_there=others_are_there))
    transport.get_extra_info("socket").close()
    peer.thread.join(LONG_S)
    return peer.received_bytes


def test_who_is_alone_sends_without_a_rest(
    pair: tuple[Transport, Peer], answer: FileSlice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(network, "REST_S", LONG_S)
    assert sent_bytes(pair, answer, others_are_there=False) == ANSWER_BYTES


def test_who_sends_a_lot_steps_back_when_others_were_served(
    pair: tuple[Transport, Peer], answer: FileSlice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(network, "REST_S", LONG_S)
    assert network.BURST_BYTES <= sent_bytes(pair, answer, others_are_there=True) < 2 * network.BURST_BYTES


def test_after_its_rest_it_goes_on(pair: tuple[Transport, Peer], answer: FileSlice) -> None:
    assert sent_bytes(pair, answer, others_are_there=True) == ANSWER_BYTES
