"""Coverage-guided fuzzing of the way from a frame to an answer: `python -m tests.fuzz.fuzz_wire [libFuzzer options]`.

The node below the sockets runs on the simulated host. Whatever the bytes are, it answers or refuses; anything else that
comes out is a bug, and libFuzzer writes the bytes that caused it to a file. FUZZ_PACKAGES names the packages whose
coverage guides it, all of which must exist.
"""

from __future__ import annotations

import asyncio
import os
import sys

import atheris

from tests.fuzz.instrumented import all_but

GUIDING = "odradek.protocol odradek.handlers odradek.log odradek.replica odradek.coordinator odradek.security"

with atheris.instrument_imports(["odradek"], exclude=all_but(*os.environ.get("FUZZ_PACKAGES", GUIDING).split())):
    from odradek.handlers.context import CloseConnection
    from odradek.protocol.malformed import MalformedMessage
    from odradek.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
    from tests.simulation.world import World

SMALLEST_FRAME_BYTES = 8
STEPS_PER_WORLD = 2_000  # then a fresh one, so that what the fuzzer creates does not pile up


class Target:
    """A node that is replaced after STEPS_PER_WORLD steps."""

    def __init__(self) -> None:
        self._calls = 0
        self._world = self._make()

    def _make(self) -> World:
        world = World(seed=1)
        topic = CreatableTopic(name="t", num_partitions=2, replication_factor=1)
        world.run(world.call(CreateTopicsRequest(topics=[topic]), CreateTopicsResponse, 7))
        return world

    def __call__(self, data: bytes) -> None:
        if len(data) < SMALLEST_FRAME_BYTES:
            return
        self._calls += 1
        if self._calls % STEPS_PER_WORLD == 0:
            self._world.close()
            self._world = self._make()
        try:
            self._world.run(self._handle(data))
        except MalformedMessage:
            return
        except CloseConnection as closing:
            if closing.__cause__ is not None:  # the dispatcher closes the connection after a handler failed
                raise

    async def _handle(self, data: bytes) -> None:
        answer = self._world.handle(memoryview(bytearray(data)))
        if asyncio.iscoroutine(answer):
            await answer


def main() -> None:
    target = Target()
    atheris.Setup(sys.argv, target)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
