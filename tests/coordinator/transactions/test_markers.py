"""Markers of a transaction: how many are appended in one turn of the event loop, and when writing them ends."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from odradek.coordinator.transactions.markers import PARTITIONS_PER_SLICE, MarkerWriter
from odradek.coordinator.transactions.transaction import TransactionVersion
from odradek.protocol.control_records import ControlRecordType, EndTransactionMarker
from odradek.protocol.errors import ErrorCode
from odradek.protocol.topic_partition import TopicPartition
from tests.simulation.simulated_host import Simulation

MARKER = EndTransactionMarker(7, 3, ControlRecordType.COMMIT, 0)
MANY: list[TopicPartition] = [("t", index) for index in range(10 * PARTITIONS_PER_SLICE)]


class Leaders:
    """Each partition refuses its first marker if it is among `refusing`. Repeated ones raise `problem`."""

    def __init__(self, refusing: set[TopicPartition] | None = None, problem: Exception | None = None) -> None:
        self._problem = problem
        self.appended: list[TopicPartition] = []
        self.repeated: list[TopicPartition] = []
        self.in_turn = self.most_in_turn = 0
        self._refusing = refusing or set()

    def append_marker(self, partition: TopicPartition, _: object, __: object, *, is_repeated: bool) -> ErrorCode:
        if is_repeated and self._problem is not None:
            raise self._problem
        if is_repeated:
            self.repeated.append(partition)
        self.in_turn += 1
        self.most_in_turn = max(self.most_in_turn, self.in_turn)
        if partition in self._refusing:
            self._refusing.discard(partition)
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        self.appended.append(partition)
        return ErrorCode.NONE

    async def count_turns(self) -> None:
        while True:
            self.in_turn = 0
            await asyncio.sleep(0)


def write(
    leaders: Leaders, partitions: list[TopicPartition], is_wanted: Callable[[], bool] = lambda: True
) -> tuple[int, int]:
    """How many markers were appended when `write` returned, and how often `done` was called: -1 for `failed`."""
    simulation = Simulation(0)
    done: list[int] = []

    async def scenario() -> int:
        tasks: list[asyncio.Task[None]] = []

        def run(coroutine: Coroutine[Any, Any, None]) -> None:
            tasks.append(asyncio.ensure_future(coroutine))

        writer = MarkerWriter(leaders, simulation.clock, run)
        counting = asyncio.ensure_future(leaders.count_turns())
        version = TransactionVersion.V2
        writer.write(
            MARKER,
            version,
            partitions,
            is_wanted=is_wanted,
            done=lambda: done.append(1),
            failed=lambda: done.append(-1),
        )
        at_once = len(leaders.appended)
        for _ in range(1000):
            await asyncio.sleep(0)
        simulation.loop.advance(60)  # all delays before another attempt
        for _ in range(1000):
            await asyncio.sleep(0)
        counting.cancel()
        await asyncio.gather(*tasks)
        return at_once

    try:
        return simulation.loop.run_until_complete(scenario()), sum(done)
    finally:
        simulation.close()


def test_few_markers_are_written_at_once() -> None:
    leaders = Leaders()
    assert write(leaders, [("t", 1), ("t", 0)]) == (2, 1)
    assert leaders.appended == [("t", 0), ("t", 1)]


def test_many_markers_leave_turns_to_others() -> None:
    leaders = Leaders()
    assert write(leaders, MANY) == (0, 1)
    assert leaders.appended == MANY
    assert leaders.most_in_turn == PARTITIONS_PER_SLICE


def test_refused_markers_are_written_again_in_slices() -> None:
    leaders = Leaders(refusing=set(MANY[1:]))
    assert write(leaders, MANY) == (0, 1)
    assert leaders.appended == MANY
    assert leaders.repeated == MANY[1:]
    assert leaders.most_in_turn == PARTITIONS_PER_SLICE


@pytest.mark.parametrize("partitions", [MANY[:2], MANY])
def test_the_caller_gets_to_know_of_markers_that_failed(
    partitions: list[TopicPartition], caplog: pytest.LogCaptureFixture
) -> None:
    leaders = Leaders(refusing={MANY[1]}, problem=RuntimeError("a bug"))
    assert write(leaders, partitions)[1] == -1
    assert [repr(record.exc_info and record.exc_info[1]) for record in caplog.records] == ["RuntimeError('a bug')"]
    caplog.clear()


def test_markers_that_are_not_wanted_any_more_are_not_written() -> None:
    leaders = Leaders()
    assert write(leaders, MANY, lambda: len(leaders.appended) < 150) == (0, 0)
    assert leaders.appended == MANY[: 2 * PARTITIONS_PER_SLICE]
