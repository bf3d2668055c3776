"""A broker without sockets in this process, for tools that measure what its handlers cost."""

from __future__ import annotations

import cProfile
import pstats
import tempfile
from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import asynccontextmanager

from odradek.configuration.broker_configs import BrokerConfig
from odradek.configuration.listeners import Endpoint
from odradek.host.host import real_host
from odradek.server.node import Node


@asynccontextmanager
async def measured_node(properties: Mapping[str, str]) -> AsyncIterator[Node]:
    with tempfile.TemporaryDirectory() as directory:
        node = Node(BrokerConfig.from_properties({"log.dirs": directory, **properties}), real_host())
        await node.start()
        await node.serve({"PLAINTEXT": Endpoint("127.0.0.1", 9092)})
        yield node
        node.release_waiting_requests()
        await node.stop()


async def print_profile(measurement: Awaitable[object], lines: int) -> None:
    with cProfile.Profile() as profile:
        await measurement
    pstats.Stats(profile).sort_stats("tottime").print_stats(lines)
