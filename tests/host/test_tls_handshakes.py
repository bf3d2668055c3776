"""Handshakes yield to established connections: by thread, by turn, and by leaving out connections that ended."""

import asyncio
import os
import ssl
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from odradek.host import tls_connection
from odradek.host.tls_connection import TlsConnection, TlsResources
from tests.host.test_tls_connection import Line, Receiver, client_streams
from tests.security.tls.certificates import CertificateFiles

PATIENCE_S = 8.0


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """Holds the thread of handshakes until it is set."""
    gate = threading.Event()
    yield gate
    gate.set()


async def handshake_waits(line: Line) -> None:
    """Until the newest connection has a step that waits for the thread."""
    while not (hasattr(line.protocol, "transport") and line.protocol.transport._step):  # noqa: ASYNC110 - no event for it
        await asyncio.sleep(0)


def test_established_connection_is_served_while_handshakes_wait(
    files: CertificateFiles, runner: asyncio.Runner, gate: threading.Event
) -> None:
    async def play() -> None:
        async with Line(files) as line, asyncio.timeout(PATIENCE_S):
            reader, writer = await client_streams(line.port, files)
            established = line.protocol
            await established.secured
            line.resources.threads.submit(gate.wait)
            line.protocol = Receiver()
            newcomer = asyncio.ensure_future(client_streams(line.port, files))
            for number in range(10):
                writer.write(b"request")
                while len(established.received) < 7 * (number + 1):
                    established.progressed.clear()
                    await established.progressed.wait()
                established.writer.write([b"response"])
                assert await reader.readexactly(8) == b"response"
            assert not newcomer.done()
            gate.set()
            _, other = await newcomer
            other.close()
            writer.close()

    runner.run(play())


def test_handshakes_run_in_their_order_and_none_for_a_connection_that_has_ended(
    files: CertificateFiles, runner: asyncio.Runner, gate: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    run: list[object] = []
    step = tls_connection._handshake_step

    def recorded(tls: ssl.SSLObject) -> bool:
        run.append(tls)
        return step(tls)

    monkeypatch.setattr(tls_connection, "_handshake_step", recorded)

    async def play() -> None:
        async with Line(files) as line, asyncio.timeout(PATIENCE_S):
            line.resources.threads.submit(gate.wait)
            clients, servers = [], []
            for _ in range(3):
                line.protocol = Receiver()
                clients.append(asyncio.ensure_future(client_streams(line.port, files)))
                await handshake_waits(line)
                servers.append(line.protocol.transport)
            servers[1].abort()
            with pytest.raises(OSError):  # noqa: PT011 - reset, or closed in the handshake
                await clients[1]
            gate.set()
            for client in (clients[0], clients[2]):
                (await client)[1].transport.abort()
            assert list(dict.fromkeys(run)) == [servers[0]._tls, servers[2]._tls]
            for server in servers:
                server.abort()

    runner.run(play())


def may_become_batch() -> bool:
    """Containers may refuse it."""
    try:
        with ThreadPoolExecutor(1) as thread:
            thread.submit(os.sched_setscheduler, 0, os.SCHED_BATCH, os.sched_param(0)).result()
    except OSError:
        return False
    return True


@pytest.mark.skipif(sys.platform != "linux", reason="other systems schedule processes, not threads")
def test_thread_of_handshakes_does_not_preempt_the_event_loop_when_it_wakes_up() -> None:
    resources = TlsResources()
    try:
        policy, thread = resources.threads.submit(lambda: (os.sched_getscheduler(0), threading.get_ident())).result()
    finally:
        resources.close()
    assert thread != threading.get_ident()
    assert policy == (os.SCHED_BATCH if may_become_batch() else os.SCHED_OTHER)
    assert os.sched_getscheduler(0) == os.SCHED_OTHER


def test_a_connection_has_at_most_one_step_waiting(
    files: CertificateFiles, runner: asyncio.Runner, gate: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = 0
    begin = TlsConnection._continue_handshake

    def counted(connection: TlsConnection) -> None:
        nonlocal begun
        begun += 1
        begin(connection)

    monkeypatch.setattr(TlsConnection, "_continue_handshake", counted)

    async def play() -> None:
        async with Line(files) as line, asyncio.timeout(PATIENCE_S):
            line.resources.threads.submit(gate.wait)
            _, writer = await asyncio.open_connection("127.0.0.1", line.port)
            writer.write(b"\x16")
            await handshake_waits(line)
            writer.write(bytes(1_000))
            await writer.drain()
            for _ in range(100):
                await asyncio.sleep(0)
            assert begun == 1
            gate.set()
            await line.protocol.failure
            writer.close()

    runner.run(play())
