"""Patterns are matched one at a time. Requests whose pattern waits when the broker stops get an error."""

import asyncio

import pytest

from odradek.coordinator.pattern_matching import PatternMatching, PatternsStopped


class HangingWorkers:
    async def run(self, *arguments: object) -> None:
        await asyncio.Event().wait()


def make_turns() -> PatternMatching:
    return PatternMatching(HangingWorkers())  # type: ignore[arg-type]  # a stand-in for tests


def test_a_stop_ends_the_pattern_that_is_matched_and_those_that_wait() -> None:
    async def run() -> list[object]:
        turns = make_turns()
        waiting = [asyncio.ensure_future(turns.run(str)) for _ in range(3)]
        await asyncio.sleep(0)
        turns.close()
        return list(await asyncio.gather(*waiting, return_exceptions=True))

    assert [type(each) for each in asyncio.run(run())] == [PatternsStopped] * 3


@pytest.mark.parametrize("is_closed", [False, True])
def test_a_caller_that_is_cancelled_stays_cancelled(is_closed: bool) -> None:
    async def run() -> None:
        turns = make_turns()
        caller = asyncio.ensure_future(turns.run(str))
        await asyncio.sleep(0)
        caller.cancel()
        if is_closed:
            turns.close()
        with pytest.raises(asyncio.CancelledError):
            await caller
        turns.close()

    asyncio.run(run())
