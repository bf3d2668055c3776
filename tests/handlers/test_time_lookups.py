"""Look-ups by time run one at a time in each log directory."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from odradek.handlers import list_offsets
from odradek.handlers.time_lookups import TimeLookups
from odradek.log.timestamp_search import TimestampOffset
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from odradek.protocol.records import Pause
from odradek.replica.leadership import LogState
from odradek.replica.partition import Partition
from tests.simulation.simulated_host import Simulation

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
    partition = SimpleNamespace(
        directory=directory,
        workers=SimpleNamespace(files=pool),
        log=SimpleNamespace(offset_for_timestamp=lambda _timestamp, pause: search(pause)),
        log_state=LogState.ONLINE,
        check_epoch=lambda _epoch: ErrorCode.NONE,
        high_watermark=10,
    )
    return cast("Partition", partition)


def after(seconds: float) -> float:
    return asyncio.get_running_loop().time() + seconds


def search(_pause: Pause) -> TimestampOffset:
    return FOUND


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_a_directory_has_one_look_up_at_a_time_and_others_do_not_wait_for_it() -> None:
    lookups, hung, sound = TimeLookups(), HeldPool(), HeldPool()
    sound.gate.set()
    waiting = [asyncio.ensure_future(lookups.run(partition_in("/one", hung), search, after(60))) for _ in range(3)]
    await settle()
    assert hung.running == 1
    assert await lookups.run(partition_in("/two", sound), search, after(60)) == FOUND
    hung.gate.set()
    assert await asyncio.gather(*waiting) == [FOUND] * 3


async def test_a_look_up_whose_client_is_gone_keeps_its_turn_until_the_worker_is_done() -> None:
    lookups, pool = TimeLookups(), HeldPool()
    gone, next_one = (
        asyncio.ensure_future(lookups.run(partition_in("/one", pool), search, after(60))) for _ in range(2)
    )
    await settle()
    gone.cancel()
    await settle()
    assert pool.running == 1
    pool.gate.set()
    assert await next_one == FOUND


async def test_a_look_up_whose_client_is_gone_before_its_turn_is_not_carried_out() -> None:
    lookups, pool = TimeLookups(), HeldPool()
    looked_up = [asyncio.ensure_future(lookups.run(partition_in("/one", pool), search, after(60))) for _ in range(3)]
    await settle()
    looked_up[1].cancel()
    await settle()
    pool.gate.set()
    assert await looked_up[0] == await looked_up[2] == FOUND
    assert pool.begun == 2


async def test_a_look_up_in_a_directory_that_hangs_is_answered_in_time() -> None:
    lookups, hung = TimeLookups(), HeldPool()
    running = asyncio.ensure_future(lookups.run(partition_in("/one", hung), search, after(60)))
    await settle()
    assert await lookups.run(partition_in("/one", hung), search, after(0.01)) is ErrorCode.REQUEST_TIMED_OUT
    hung.gate.set()
    assert await running == FOUND
    assert hung.begun == 1


@pytest.mark.parametrize(("timeout_ms", "longest_s"), [(0, 20), (30_000, 20), (60_000, 20), (15_000, 10)])
def test_all_look_ups_of_a_request_wait_together_for_less_than_its_client(timeout_ms: int, longest_s: int) -> None:
    lookups, hung, sound = TimeLookups(), HeldPool(), HeldPool()
    sound.gate.set()
    partitions = [partition_in("/one", hung)] * 3 + [partition_in("/two", sound)] * 2
    services = SimpleNamespace(
        time_lookups=lookups, partitions=SimpleNamespace(find=lambda _topic, index: partitions[index])
    )
    context = SimpleNamespace(services=services, api_version=11, allows_on_topic=lambda *_: True)
    asked = [ListOffsetsPartition(partition_index=index, timestamp=7) for index in range(len(partitions))]
    request = ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsTopic(name="t", partitions=asked)], timeout_ms=timeout_ms
    )

    async def ask() -> tuple[Any, float]:
        begun = asyncio.get_running_loop().time()
        running = asyncio.ensure_future(lookups.run(partitions[0], search, after(60)))
        await settle()
        response = await cast("Any", list_offsets.handle(request, cast("Any", context)))
        passed_s = asyncio.get_running_loop().time() - begun
        hung.gate.set()
        await running
        return response, passed_s

    simulation = Simulation(0)
    response, passed_s = simulation.loop.run_until_complete(ask())
    simulation.close()
    errors = [each.error_code for each in response.topics[0].partitions]
    assert errors == [ErrorCode.REQUEST_TIMED_OUT] * 3 + [ErrorCode.NONE] * 2
    assert [each.offset for each in response.topics[0].partitions[3:]] == [FOUND.offset] * 2
    assert longest_s <= passed_s < longest_s + 1


async def test_no_look_up_begins_after_the_end() -> None:
    lookups, pool = TimeLookups(), HeldPool()
    running, waiting = (
        asyncio.ensure_future(lookups.run(partition_in("/one", pool), search, after(60))) for _ in range(2)
    )
    await settle()
    lookups.close()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert await waiting is ErrorCode.REQUEST_TIMED_OUT
    assert pool.begun == 1
