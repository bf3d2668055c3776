"""Answers on their way out: who sends a lot steps back when others are there, and only then."""

import asyncio
import contextlib
import os
import socket
import threading
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path

import pytest

from odradek.host import network
from odradek.host.network import ShortAnswers, SocketWriter
from odradek.host.real_disk import RealFile
from odradek.host.slices import FileSlice

LONG_S = 60
ANSWER_BYTES = 4 * network.BURST_BYTES
ACK = b"short"


class Transport(asyncio.BaseTransport):
    """All that a writer asks of one: its socket."""


class Line:
    """A connection whose other end takes whatever comes."""

    def __init__(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            self.ours = socket.create_connection(server.getsockname())
            self.theirs, _ = server.accept()
        self.ours.setblocking(False)
        self.received_bytes = 0
        self.kept_bytes = len(ACK)
        self.end = b""  # the last bytes that it received
        self._thread = threading.Thread(target=self._receive)
        self._thread.start()

    def _receive(self) -> None:
        """Until the end of the connection: a peer that shuts down while data arrives may also get a reset."""
        with contextlib.suppress(ConnectionResetError):
            while data := self.theirs.recv(1 << 16):
                self.received_bytes += len(data)
                self.end = (self.end + data)[-self.kept_bytes :]

    def close(self) -> None:
        self.ours.close()
        self._thread.join(LONG_S)
        self.theirs.close()


class Scene:
    """A writer with a long answer to send, and another who is served meanwhile or not."""

    def __init__(self, line: Line, other: Line, when_moved: Callable[["Scene"], None] = lambda _scene: None) -> None:
        short_answers = ShortAnswers()
        short_answers.count = 7  # the broker has served others before these came
        loop = asyncio.get_running_loop()
        self.writer = SocketWriter(Transport({"socket": line.ours}), loop, short_answers, self._moved, self._failed)
        self.other = SocketWriter(Transport({"socket": other.ours}), loop, short_answers, self._never, self._never)
        self.problems: list[OSError] = []
        self.rest_count = 0
        self.is_over = asyncio.Event()
        self._when_moved = when_moved

    def _failed(self, problem: OSError) -> None:
        self.problems.append(problem)
        self.is_over.set()

    def _moved(self) -> None:
        self.rest_count += self.writer.is_resting
        self._when_moved(self)
        if self.writer.is_drained:
            self.is_over.set()

    def _never(self, *_: object) -> None:
        raise AssertionError("a short answer goes out at once")

    async def end(self) -> None:
        try:
            await asyncio.wait_for(self.is_over.wait(), LONG_S)
        finally:
            self.writer.close()
            self.other.close()


@pytest.fixture
def lines() -> Iterator[tuple[Line, Line]]:
    both = Line(), Line()
    yield both
    for line in both:
        line.close()


@pytest.fixture
def answer(tmp_path: Path) -> FileSlice:
    path = tmp_path / "records"
    path.write_bytes(bytes(ANSWER_BYTES))
    return FileSlice(RealFile(os.open(path, os.O_RDONLY)), 0, ANSWER_BYTES)


def serve_other(scene: Scene) -> None:
    scene.other.write([ACK])


def run(line: Line, play: Coroutine[object, object, Scene]) -> Scene:
    scene = asyncio.run(play)
    line.close()
    return scene


def test_who_is_alone_sends_without_a_rest(lines: tuple[Line, Line], answer: FileSlice) -> None:
    """Its own short answers do not count."""

    async def play() -> Scene:
        scene = Scene(*lines)
        scene.writer.write([ACK])
        scene.writer.write([answer])
        await scene.end()
        return scene

    assert run(lines[0], play()).rest_count == 0
    assert lines[0].received_bytes == len(ACK) + ANSWER_BYTES


def test_who_sends_a_lot_steps_back_for_those_who_are_served(lines: tuple[Line, Line], answer: FileSlice) -> None:
    async def play() -> Scene:
        scene = Scene(*lines, serve_other)
        scene.writer.write([answer])
        await scene.end()
        return scene

    assert 2 <= run(lines[0], play()).rest_count <= ANSWER_BYTES // network.BURST_BYTES
    assert lines[0].received_bytes == ANSWER_BYTES


def test_what_is_written_during_a_rest_waits_for_its_place(lines: tuple[Line, Line], answer: FileSlice) -> None:
    async def play() -> Scene:
        def when_moved(scene: Scene) -> None:
            serve_other(scene)
            if scene.writer.is_resting and scene.rest_count == 1:
                scene.writer.write([ACK])

        scene = Scene(*lines, when_moved)
        scene.writer.write([answer])
        await scene.end()
        return scene

    assert run(lines[0], play()).rest_count >= 2
    assert (lines[0].received_bytes, lines[0].end) == (ANSWER_BYTES + len(ACK), ACK)


def test_a_peer_that_goes_during_a_rest_is_reported_once(lines: tuple[Line, Line], answer: FileSlice) -> None:
    async def play() -> Scene:
        def when_moved(scene: Scene) -> None:
            serve_other(scene)
            if scene.writer.is_resting:
                lines[0].theirs.shutdown(socket.SHUT_RDWR)

        scene = Scene(*lines, when_moved)
        scene.writer.write([answer])
        await scene.end()
        return scene

    assert len(run(lines[0], play()).problems) == 1


def test_who_is_closed_during_a_rest_never_goes_on(
    lines: tuple[Line, Line], answer: FileSlice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(network, "REST_S", 0.05)

    async def play() -> Scene:
        def when_moved(scene: Scene) -> None:
            serve_other(scene)
            if scene.writer.is_resting:
                scene.writer.close()
                asyncio.get_running_loop().call_later(4 * network.REST_S, scene.is_over.set)

        scene = Scene(*lines, when_moved)
        scene.writer.write([answer])
        await asyncio.wait_for(scene.is_over.wait(), LONG_S)
        scene.other.close()
        return scene

    assert run(lines[0], play()).rest_count == 1
    assert lines[0].received_bytes < ANSWER_BYTES


@pytest.mark.parametrize("size_bytes", [1, network.COPIED_BYTES, network.COPIED_BYTES + 1])
def test_the_parts_of_an_answer_arrive_in_their_order(
    lines: tuple[Line, Line], tmp_path: Path, size_bytes: int
) -> None:
    """Whether its file bytes are copied or not."""
    line = lines[0]
    line.kept_bytes = size_bytes + 3 * len(ACK)
    written = os.urandom(size_bytes)
    (tmp_path / "records").write_bytes(b"before" + written + b"after")
    records = FileSlice(RealFile(os.open(tmp_path / "records", os.O_RDONLY)), len(b"before"), size_bytes)

    async def play() -> Scene:
        scene = Scene(*lines)
        scene.writer.write([b"head1", records, b"tail1"])
        scene.writer.write([ACK])
        if scene.writer.is_drained:
            scene.is_over.set()
        await scene.end()
        return scene

    assert not run(line, play()).problems
    assert line.end == b"head1" + written + b"tail1" + ACK


@pytest.mark.parametrize("size_bytes", [network.COPIED_BYTES, network.COPIED_BYTES + 1])
def test_a_file_that_is_shorter_than_its_slice_is_reported(
    lines: tuple[Line, Line], tmp_path: Path, size_bytes: int
) -> None:
    (tmp_path / "records").write_bytes(bytes(size_bytes - 1))
    records = FileSlice(RealFile(os.open(tmp_path / "records", os.O_RDONLY)), 0, size_bytes)

    async def play() -> Scene:
        scene = Scene(*lines)
        scene.writer.write([ACK, records])
        await scene.end()
        return scene

    (problem,) = run(lines[0], play()).problems
    assert str(problem) == "the file ended 1 bytes before the slice that was promised"
