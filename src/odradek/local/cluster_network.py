"""The network between the brokers of a test cluster, as a process: `python -m odradek.local.cluster_network`.

Each broker advertises to the other brokers an address of this process, which forwards every connection to the broker. A
connection has two links, one for each direction, and each link can be cut, delayed and limited. Bytes on a link that is
cut are held, as TCP would retransmit them, and delivered after `heal`. The sender is known by the client id of its
first request (`odradek-ID`), or, on the way to ZooKeeper, by the address, of which each broker has its own.

`ClusterNetwork` starts it. Commands are JSON objects on standard input, one per line; each is answered by one on
standard output. The process ends with its standard input.
"""

from __future__ import annotations

import asyncio
import json
import random
import socket
import subprocess
import sys
from collections.abc import Iterable
from typing import Any

from odradek.local.ports import find_stable_port

ZOOKEEPER = "zookeeper"
STOP_TIMEOUT_S = 60.0
CHUNK_BYTES = 16 * 1024
QUEUED_CHUNKS = 64  # per direction of a connection: then the sender is not read from
SEGMENT_BYTES = 1448  # of TCP on Ethernet
RETRANSMISSION_S = 0.2  # the shortest timeout of Linux
POLL_S = 0.02
CLIENT_ID = b"odradek-"
_CLIENT_ID_POSITION = 14  # after size, API key, version, correlation id and the length of the client id


class ClusterNetwork:
    """The process as a cluster uses it. Nodes are named by broker ids and `ZOOKEEPER`."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "odradek.local.cluster_network"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def open(self, name: str, target_port: int, *, source: str | None = None) -> int:
        """The port through which others reach the node. `source` is the one node that uses it, if there is only one."""
        port = find_stable_port()
        answer = self._execute(do="open", name=name, source=source, port=port, target_port=target_port)
        return int(answer["port"])

    def cut(self, links: Iterable[tuple[str, str]]) -> None:
        self._execute(do="cut", links=list(links))

    def heal(self) -> None:
        self._execute(do="heal")

    def shape(self, *, delay_ms: float, megabits_per_s: float, loss: float) -> None:
        self._execute(do="shape", delay_ms=delay_ms, megabits_per_s=megabits_per_s, loss=loss)

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(STOP_TIMEOUT_S)
        self._process.stdout.close()

    def _execute(self, **command: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline() or '{"error": "the process has ended"}')
        if "error" in answer:
            raise RuntimeError(f"the network of the cluster failed: {answer['error']}")
        return answer


class Link:
    """One direction between two nodes."""

    def __init__(self) -> None:
        self.is_open = asyncio.Event()
        self.is_open.set()
        self.delay_s = 0.0
        self.bytes_per_s = 0.0
        self.loss = 0.0
        self._free_at_s = 0.0

    def shape(self, *, delay_ms: float, megabits_per_s: float, loss: float) -> None:
        self.delay_s = delay_ms / 1000
        self.bytes_per_s = megabits_per_s * 1_000_000 / 8
        self.loss = loss

    def delivery_s(self, size: int, now_s: float) -> float:
        """When a chunk that is sent now arrives. Connections share the bandwidth; lost segments are sent again."""
        if self.bytes_per_s:
            self._free_at_s = max(self._free_at_s, now_s) + size / self.bytes_per_s
            now_s = self._free_at_s
        lost = self._count_lost(-(-size // SEGMENT_BYTES))
        while lost:
            now_s += RETRANSMISSION_S
            lost = self._count_lost(lost)
        return now_s + self.delay_s

    def _count_lost(self, segments: int) -> int:
        return sum(random.random() < self.loss for _ in range(segments)) if self.loss else 0


class Target:
    """A broker or ZooKeeper. While it refuses connections, so does its address here, which shows that it is dead."""

    def __init__(self, network: Network, name: str, source: str | None, port: int, target_port: int) -> None:
        self._network = network
        self._name = name
        self._source = source  # None: of the first request
        self._socket = _bound(port)
        self._port: int = self._socket.getsockname()[1]
        self._target_port = target_port
        self._server: asyncio.Server | None = None
        self._opening: asyncio.Task[None] | None = None

    async def open(self) -> int:
        if await self._is_listening():
            await self._listen()
        else:
            self._opening = asyncio.ensure_future(self._listen_later())
        return self._port

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._serve, sock=self._socket, backlog=1024)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            first = b"" if self._source is not None else await _first_request(reader)
            source = self._source or _sender(first)
            if source is None:
                return
            try:
                upstream_reader, upstream_writer = await asyncio.open_connection("127.0.0.1", self._target_port)
            except OSError:
                self._close()
                return
            there, back = self._network.link(source, self._name), self._network.link(self._name, source)
            try:
                pumps = [
                    asyncio.ensure_future(_pump(reader, upstream_writer, there, first)),
                    asyncio.ensure_future(_pump(upstream_reader, writer, back, b"")),
                ]
                await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
                for pump in pumps:
                    pump.cancel()
                await self._check()
            finally:
                upstream_writer.transport.abort()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.transport.abort()

    async def _check(self) -> None:
        """Closes the address of a broker that refuses connections, before its peers see theirs end."""
        if not await self._is_listening():
            self._close()

    async def _is_listening(self) -> bool:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", self._target_port)
        except OSError:
            return False
        writer.transport.abort()
        return True

    def _close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
            self._socket = _bound(self._port)
            self._opening = asyncio.ensure_future(self._listen_later())

    async def _listen_later(self) -> None:
        while not await self._is_listening():  # noqa: ASYNC110 - the event is in another process
            await asyncio.sleep(POLL_S)
        await self._listen()


def _bound(port: int) -> socket.socket:
    """A socket that keeps the port, and refuses connections until it listens."""
    bound = socket.socket()
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    bound.bind(("127.0.0.1", port))
    return bound


class Network:
    def __init__(self) -> None:
        self._links: dict[tuple[str, str], Link] = {}
        self._shape = {"delay_ms": 0.0, "megabits_per_s": 0.0, "loss": 0.0}
        self._targets: list[Target] = []

    def link(self, source: str, destination: str) -> Link:
        found = self._links.get((source, destination))
        if found is None:
            found = self._links[source, destination] = Link()
            found.shape(**self._shape)
        return found

    async def execute(self, command: dict[str, Any]) -> dict[str, Any]:
        match command.pop("do"):
            case "open":
                target = Target(self, **command)
                self._targets.append(target)
                return {"port": await target.open()}
            case "cut":
                for source, destination in command["links"]:
                    self.link(source, destination).is_open.clear()
            case "heal":
                for link in self._links.values():
                    link.is_open.set()
            case "shape":
                self._shape = command
                for link in self._links.values():
                    link.shape(**command)
        return {}


async def _first_request(reader: asyncio.StreamReader) -> bytes:
    """The bytes until the end of the client id."""
    head = await reader.readexactly(_CLIENT_ID_POSITION)
    length = int.from_bytes(head[-2:], "big", signed=True)
    return head + await reader.readexactly(max(length, 0))


def _sender(first: bytes) -> str | None:
    client_id = first[_CLIENT_ID_POSITION:]
    return client_id.removeprefix(CLIENT_ID).decode() if client_id.startswith(CLIENT_ID) else None


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, link: Link, first: bytes) -> None:
    """Forwards what the sender writes until it closes, and returns when all of it is delivered."""
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(QUEUED_CHUNKS)
    delivery = asyncio.ensure_future(_deliver(queue, writer, link))
    try:
        chunk = first or await reader.read(CHUNK_BYTES)
        while chunk:
            await queue.put((link.delivery_s(len(chunk), loop.time()), chunk))
            chunk = await reader.read(CHUNK_BYTES)
    except ConnectionError:
        pass
    finally:
        await queue.put((loop.time() + link.delay_s, b""))
        try:
            await delivery
        finally:
            delivery.cancel()


async def _deliver(queue: asyncio.Queue[tuple[float, bytes]], writer: asyncio.StreamWriter, link: Link) -> None:
    loop = asyncio.get_running_loop()
    while True:
        arrives_s, chunk = await queue.get()
        if arrives_s > loop.time():
            await asyncio.sleep(arrives_s - loop.time())
        await link.is_open.wait()
        if not chunk:
            return
        try:
            writer.write(chunk)
            await writer.drain()
        except ConnectionError:
            return


async def main() -> None:
    loop = asyncio.get_running_loop()
    commands = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(commands), sys.stdin)
    network = Network()
    while line := await commands.readline():
        try:
            answer = await network.execute(json.loads(line))
        except OSError as problem:
            answer = {"error": str(problem)}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
