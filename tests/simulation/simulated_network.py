"""Connections between the simulated brokers: bytes arrive in order, after a seeded delay, unless the way is cut.

A cut holds bytes back as TCP does: they arrive once it is healed, if the connection is open then. A machine that
crashes closes its connections; the other end learns of it only if the way to it is not cut.
"""

from __future__ import annotations

import asyncio
import contextvars
import random
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar, cast

P = TypeVar("P", bound=asyncio.BaseProtocol)

LONGEST_DELAY_MS = 20.0


class _End:
    """One end of a connection, the transport of its protocol."""

    def __init__(
        self,
        network: SimulatedNetwork,
        machine: str,
        protocol: asyncio.BaseProtocol,
        context: contextvars.Context,
    ) -> None:
        self._network = network
        self.machine = machine
        self.protocol: Any = protocol
        self.context = context  # in which the machine's code runs
        self.peer: _End = self
        self.in_transit: deque[bytes | None] = deque()  # None: the peer has closed
        self.is_lost = False
        self._closes = False
        self.last_arrival_s = 0.0

    # asyncio.Transport

    def write(self, data: bytes) -> None:
        if not self._closes and not self.is_lost:
            self._network.send(self, bytes(data))

    def close(self) -> None:
        if not self._closes:
            self._closes = True
            self._network.send(self, None)
            self._network.loop.call_soon(self.lose, context=self.context)

    abort = close

    def is_closing(self) -> bool:
        return self._closes or self.is_lost

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return (self.peer.machine, 0) if name == "peername" else default

    # The network

    def lose(self, problem: Exception | None = None) -> None:
        if not self.is_lost:
            self.is_lost = self._closes = True
            self._network.ends.pop(self, None)
            self.protocol.connection_lost(problem)

    def receive(self) -> None:
        """The oldest of what is in transit. Timers for the same time may fire in any order."""
        data = self.in_transit.popleft()
        if self.is_lost:
            return
        if data is None:
            self.lose()
            return
        view = memoryview(data)
        while view and not self._closes:
            buffer = self.protocol.get_buffer(len(view))
            size = min(len(buffer), len(view))
            buffer[:size] = view[:size]
            self.protocol.buffer_updated(size)
            view = view[size:]


class SimulatedNetwork:
    def __init__(self, loop: asyncio.AbstractEventLoop, chance: random.Random) -> None:
        self.loop = loop
        self._chance = chance
        self._listening: dict[tuple[str, int], tuple[Callable[[], asyncio.BaseProtocol], contextvars.Context]] = {}
        self.ends: dict[_End, None] = {}
        self._cuts: set[tuple[str, str]] = set()
        self._held: dict[tuple[str, str], list[Callable[[], None]]] = {}
        self._healed = asyncio.Event()
        self.longest_delay_ms = LONGEST_DELAY_MS

    def from_machine(self, machine: str) -> MachineNetwork:
        """The network as a broker on this machine uses it."""
        return MachineNetwork(self, machine)

    def listen(self, machine: str, port: int, accept: Callable[[], asyncio.BaseProtocol]) -> None:
        """Connections run in the present context."""
        self._listening[machine, port] = accept, contextvars.copy_context()

    # Faults

    def cut(self, source: str, target: str) -> None:
        """One way only."""
        self._healed.clear()
        self._cuts.add((source, target))

    def isolate(self, machine: str, others: list[str]) -> None:
        for other in others:
            if other != machine:
                self.cut(machine, other)
                self.cut(other, machine)

    def is_cut(self, one: str, other: str) -> bool:
        return (one, other) in self._cuts or (other, one) in self._cuts

    def heal(self) -> None:
        self._cuts.clear()
        self._healed.set()
        held, self._held = self._held, {}
        for deliveries in held.values():
            for deliver in deliveries:
                deliver()

    def drop_connections(self, machine: str) -> None:
        """All connections of the machine are reset at both ends."""
        for end in tuple(self.ends):
            if machine in (end.machine, end.peer.machine):
                end.context.run(end.lose, ConnectionResetError("reset"))

    def crash(self, machine: str) -> None:
        """The machine's ports close, its ends are gone without a word to its own protocols, and its peers notice."""
        for key in [key for key in self._listening if key[0] == machine]:
            del self._listening[key]
        for end in tuple(self.ends):
            if end.machine == machine and not end.is_lost:
                end.is_lost = True
                del self.ends[end]
                self.send(end, None)

    # Delivery

    def send(self, source: _End, data: bytes | None) -> None:
        target = source.peer
        way = source.machine, target.machine
        if way in self._cuts:
            self._held.setdefault(way, []).append(lambda: self.send(source, data))
            return
        arrival_s = max(self.loop.time() + self.delay_s(), target.last_arrival_s)
        target.last_arrival_s = arrival_s

        target.in_transit.append(data)
        self.loop.call_at(arrival_s, target.receive, context=target.context)

    def delay_s(self) -> float:
        return self._chance.uniform(0.1, self.longest_delay_ms) / 1000

    async def connect(self, source: str, protocol_factory: Callable[[], P], host: str, port: int) -> P:
        await asyncio.sleep(self.delay_s())  # a poll's pause: on virtual time
        while self.is_cut(source, host):
            await self._healed.wait()
        if (host, port) not in self._listening:
            raise ConnectionRefusedError(f"{host}:{port} refuses connections")
        accept, context = self._listening[host, port]
        ours = _End(self, source, protocol_factory(), contextvars.copy_context())
        theirs = _End(self, host, context.run(accept), context)
        ours.peer, theirs.peer = theirs, ours
        self.ends |= {ours: None, theirs: None}
        ours.protocol.connection_made(ours)
        context.run(theirs.protocol.connection_made, theirs)
        return cast("P", ours.protocol)


class MachineNetwork:
    def __init__(self, network: SimulatedNetwork, machine: str) -> None:
        self._network = network
        self._machine = machine

    async def connect(self, protocol_factory: Callable[[], P], host: str, port: int) -> P:
        return await self._network.connect(self._machine, protocol_factory, host, port)
