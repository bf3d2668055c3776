"""TLS over real sockets on the event loop: limits of time and memory, pauses, slow readers, refused names."""

import asyncio
import os
import socket
import ssl
from pathlib import Path
from typing import Self

import pytest

from odradek.host import tls_connection
from odradek.host.connecting import SystemNetwork
from odradek.host.network import ShortAnswers
from odradek.host.real_disk import RealDisk
from odradek.host.slices import FileSlice
from odradek.host.tls_connection import RECEIVE_BYTES, RecordCount, TlsConnection, TlsResources
from odradek.host.tls_network import TlsNetwork
from odradek.host.tls_writer import PIECE_BYTES, TlsWriter
from tests.security.tls.certificates import CertificateFiles

PATIENCE_S = 60.0
LARGEST_RECORD_BYTES = 16 << 10


class Receiver(asyncio.BufferedProtocol):
    """Keeps what it receives, and may pause after each receive."""

    def __init__(self) -> None:
        self.received = bytearray()
        self.memory = memoryview(bytearray(1 << 20))
        self.pauses = False
        self.secured: asyncio.Future[bytes | None] = asyncio.get_running_loop().create_future()
        self.failure: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.lost = asyncio.Event()
        self.progressed = asyncio.Event()
        self.writer: TlsWriter

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, TlsConnection)
        self.transport = transport
        self.writer = transport.open_writer(ShortAnswers(), self.progressed.set, lambda _error: None)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self.memory

    def buffer_updated(self, nbytes: int) -> None:
        self.received += self.memory[:nbytes]
        self.progressed.set()
        if self.pauses:
            self.transport.pause_reading()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.set()


class Line:
    """A listening TLS socket; the protocol of its first connection."""

    def __init__(self, files: CertificateFiles) -> None:
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(files.broker)
        self.resources = TlsResources()
        self.protocol = Receiver()

    async def open(self) -> int:
        def secured(certificate: bytes | None) -> None:
            self.protocol.secured.set_result(certificate)

        loop = asyncio.get_running_loop()
        self.server = await loop.create_server(
            lambda: TlsConnection(
                self.protocol,
                self.context,
                self.resources,
                loop,
                on_secured=secured,
                on_failed=self.protocol.failure.set_result,
            ),
            "0.0.0.0",
            0,
        )
        port: int = self.server.sockets[0].getsockname()[1]
        return port

    async def __aenter__(self) -> Self:
        self.port = await self.open()
        return self

    async def __aexit__(self, *_exception: object) -> None:
        if hasattr(self.protocol, "transport"):
            self.protocol.transport.abort()
        self.server.close()
        self.resources.close()


async def client_streams(port: int, files: CertificateFiles) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    context = ssl.create_default_context(cafile=files.ca)
    return await asyncio.open_connection("127.0.0.1", port, ssl=context, limit=1 << 16)


def test_silent_peer_is_closed_when_the_time_for_a_handshake_is_over(
    files: CertificateFiles, runner: asyncio.Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tls_connection, "HANDSHAKE_TIMEOUT_S", 0.05)

    async def play() -> None:
        async with Line(files) as line, asyncio.timeout(PATIENCE_S):
            reader, writer = await asyncio.open_connection("127.0.0.1", line.port)
            assert await reader.read() == b""
            assert "took longer" in await line.protocol.failure
            await line.protocol.lost.wait()
            writer.close()

    runner.run(play())


def test_reader_that_is_slow_gets_bytes_and_file_slices_in_order(
    files: CertificateFiles, runner: asyncio.Runner, tmp_path: Path
) -> None:
    content = os.urandom(3_000_000)
    (tmp_path / "segment").write_bytes(content)
    file = RealDisk().open(str(tmp_path / "segment"))
    parts: list[bytes | FileSlice] = [
        b"head",
        FileSlice(file, 100, 2_000_000),
        b"middle",
        FileSlice(file, 5, 900_000),
        b"tail" * 200_000,
    ]

    async def play() -> None:
        async with Line(files) as line, asyncio.timeout(PATIENCE_S):
            reader, writer = await client_streams(line.port, files)
            await line.protocol.secured
            output = line.protocol.writer
            for _ in range(3):
                output.write(parts)
            assert not output.is_drained  # the socket does not take 11 MB
            expected = b"".join(each.read() if isinstance(each, FileSlice) else each for each in parts) * 3
            assert await reader.readexactly(len(expected)) == expected
            while not output.is_drained:
                line.protocol.progressed.clear()
                await line.protocol.progressed.wait()
            writer.close()

    runner.run(play())


def test_paused_protocol_gets_no_more_than_one_receive_and_one_record(
    files: CertificateFiles, runner: asyncio.Runner
) -> None:
    sent = os.urandom(5_000_000)

    async def play() -> None:
        async with Line(files) as line, asyncio.timeout(PATIENCE_S):
            _, writer = await client_streams(line.port, files)
            protocol = line.protocol
            await protocol.secured
            protocol.pauses = True
            writer.write(sent)
            while len(protocol.received) < len(sent):
                protocol.progressed.clear()
                before = len(protocol.received)
                protocol.transport.resume_reading()
                await protocol.progressed.wait()
                assert len(protocol.received) - before <= RECEIVE_BYTES + LARGEST_RECORD_BYTES
            assert bytes(protocol.received) == sent
            writer.close()

    runner.run(play())


def test_peer_learns_that_nothing_was_cut_off(files: CertificateFiles, runner: asyncio.Runner) -> None:
    async def play() -> None:
        async with Line(files) as line, asyncio.timeout(PATIENCE_S):
            reader, writer = await client_streams(line.port, files)
            await line.protocol.secured
            line.protocol.writer.write([b"the end"])
            line.protocol.transport.close()
            assert await reader.read() == b"the end"  # without the alert this would be an SSLError
            await line.protocol.lost.wait()
            writer.close()

    runner.run(play())


def test_encrypted_piece_is_bounded(files: CertificateFiles, runner: asyncio.Runner) -> None:
    async def play() -> None:
        async with Line(files) as line, asyncio.timeout(PATIENCE_S):
            _, writer = await client_streams(line.port, files)
            await line.protocol.secured
            output = line.protocol.writer
            line.protocol.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
            output.write([bytes(20 << 20)])
            assert len(output.unsent) == 2  # the encrypted piece, and the rest as it was given
            assert len(output.unsent[0].data) <= PIECE_BYTES + 4096  # type: ignore[union-attr]  # bytes, as written
            writer.close()

    runner.run(play())


def test_client_checks_the_name_of_its_peer(files: CertificateFiles, runner: asyncio.Runner) -> None:
    async def play() -> None:
        async with Line(files) as line, asyncio.timeout(PATIENCE_S):
            port = line.port
            context = ssl.create_default_context(cafile=files.ca)
            network = TlsNetwork(SystemNetwork(), lambda: context, line.resources)
            connected = await network.connect(Receiver, "127.0.0.1", port)
            connected.transport.write(b"hello")
            while line.protocol.received != b"hello":
                line.protocol.progressed.clear()
                await line.protocol.progressed.wait()
            line.protocol = Receiver()
            with pytest.raises(OSError, match="certificate not accepted"):
                await network.connect(Receiver, "127.0.0.2", port)
            connected.transport.close()

    runner.run(play())


@pytest.mark.parametrize("receive_bytes", [1, 2, 4, 5, 6, 7, 100, 1000])
def test_records_are_counted_wherever_a_receive_ends(receive_bytes: int) -> None:
    stream = b"".join(b"\x17\x03\x03" + size.to_bytes(2, "big") + bytes(size) for size in (0, 1, 5, 22, 300, 0, 0))
    count = RecordCount()
    fed = b""
    for start in range(0, len(stream), receive_bytes):
        data = memoryview(stream)[start : start + receive_bytes]
        while data:
            before = count.records
            position = count.add(data, 2)
            assert count.records - before <= 2
            fed += data[:position]
            data = data[position:]
    assert (fed, count.records) == (stream, 7)
