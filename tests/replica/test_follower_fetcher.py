"""A follower's fetches from one leader: how changes of its partitions end the wait of a fetch."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from odradek.replica.follower_fetcher import FollowerFetcher

CONFIG = SimpleNamespace(replica_socket_timeout_ms=1000, replica_fetch_backoff_ms=100)
PARTITIONS = 50


class Leader:
    """A client of a leader that lets fetches wait."""

    is_connected = True

    def __init__(self) -> None:
        self.other_requests = 0

    async def call(self, *_request: object, **_options: object) -> None:
        self.other_requests += 1


def test_many_changes_end_the_wait_of_a_fetch_with_one_request() -> None:
    async def story() -> None:
        leader: Any = Leader()
        fetches: list[asyncio.Future[None]] = []
        clock: Any = None
        config: Any = lambda: CONFIG  # noqa: E731 - a name for a type that is not needed
        fetcher: Any = FollowerFetcher(leader, 1, lambda: 5, config, clock, clock)

        async def fetch(_changes: object) -> None:
            fetches.append(asyncio.get_running_loop().create_future())
            await fetches[-1]

        fetcher._fetch = fetch
        fetcher._changes = lambda: {"partition": "position"}
        for number in range(1, 4):
            await asyncio.sleep(0.01)  # a poll's pause: the fetch begins
            assert len(fetches) == number
            for _ in range(PARTITIONS):
                fetcher._wake()
            await asyncio.sleep(0.01)  # a poll's pause: requests are sent
            assert leader.other_requests == number
            fetches[-1].set_result(None)
        fetcher.stop()
        await asyncio.sleep(0)

    asyncio.run(story())
