"""Look-ups by time run one at a time in each log directory."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from odradek.handlers import time_lookups
from odradek.handlers.time_lookups import TimeLookups
from odradek.log.timestamp_search import TimestampOffset
from odradek.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from odradek.protocol.records import Pause
    from odradek.replica.partition import Partition

FOUND = TimestampOffset(1_000, 5, 0)


class HeldPool:
    """Work begins at once and ends when `gate` is set."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.running = 0
        self.begun = 0

    async def run(self, function: Any, *arguments: Any) -> Any:
        self.running += 1
        self.begun += 1
        await self.gate.wait()
        self.running -= 1
        return function(*arguments)


def partition_in(directory: str, pool: HeldPool) -> Partition:
    return cast("Partition", SimpleNamespace(directory=directory, workers=SimpleNamespace(files=pool)))


def search(_pause: Pause) -> TimestampOffset:
    return FOUND


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_a_directory_has_one_look_up_at_a_time_and_others_do_not_wait_for_it() -> None:
    lookups, hung, sound = TimeLookups(), HeldPool(), HeldPool()
    sound.gate.set()
    waiting = [asyncio.ensure_future(lookups.run(partition_in("/one", hung), search)) for _ in range(3)]
    await settle()
    assert hung.running == 1
    assert await lookups.run(partition_in("/two", sound), search) == FOUND
    hung.gate.set()
    assert await asyncio.gather(*waiting) == [FOUND] * 3


async def test_a_look_up_whose_client_is_gone_keeps_its_turn_until_the_worker_is_done() -> None:
    lookups, pool = TimeLookups(), HeldPool()
    gone, next_one = (asyncio.ensure_future(lookups.run(partition_in("/one", pool), search)) for _ in range(2))
    await settle()
    gone.cancel()
    await settle()
    assert pool.running == 1
    pool.gate.set()
    assert await next_one == FOUND


async def test_a_look_up_whose_client_is_gone_before_its_turn_is_not_carried_out() -> None:
    lookups, pool = TimeLookups(), HeldPool()
    looked_up = [asyncio.ensure_future(lookups.run(partition_in("/one", pool), search)) for _ in range(3)]
    await settle()
    looked_up[1].cancel()
    await settle()
    pool.gate.set()
    assert await looked_up[0] == await looked_up[2] == FOUND
    assert pool.begun == 2


async def test_a_look_up_in_a_directory_that_hangs_is_answered_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_lookups, "LONGEST_WAIT_MS", 10)
    lookups, hung = TimeLookups(), HeldPool()
    running = asyncio.ensure_future(lookups.run(partition_in("/one", hung), search))
    await settle()
    assert await lookups.run(partition_in("/one", hung), search) is ErrorCode.REQUEST_TIMED_OUT
    hung.gate.set()
    assert await running == FOUND
    assert hung.begun == 1


async def test_no_look_up_begins_after_the_end() -> None:
    lookups, pool = TimeLookups(), HeldPool()
    running, waiting = (asyncio.ensure_future(lookups.run(partition_in("/one", pool), search)) for _ in range(2))
    await settle()
    lookups.close()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert await waiting is ErrorCode.REQUEST_TIMED_OUT
    assert pool.begun == 1
