"""Writes of a log directory are not interleaved, also when their callers are cancelled."""

import asyncio
from contextlib import suppress
from typing import cast

from odradek.log.log_directory import LogDirectory
from odradek.replica.directory_writes import DirectoryWrites

ONE, TWO = cast("LogDirectory", "one"), cast("LogDirectory", "two")


class Writer:
    """A write that ends when `may_end` is set."""

    def __init__(self) -> None:
        self.may_end = asyncio.Event()
        self.has_begun = self.has_ended = False

    async def __call__(self) -> None:
        self.has_begun = True
        await self.may_end.wait()
        self.has_ended = True


async def _begin(writes: DirectoryWrites, directory: LogDirectory, writer: Writer) -> asyncio.Task[None]:
    task = asyncio.create_task(writes.run(directory, writer))
    for _ in range(5):
        await asyncio.sleep(0)
    return task


async def test_a_write_waits_for_the_end_of_one_whose_caller_was_cancelled() -> None:
    writes, first, second = DirectoryWrites(), Writer(), Writer()
    cancelled = await _begin(writes, ONE, first)
    cancelled.cancel()
    with suppress(asyncio.CancelledError):
        await cancelled
    second_task = await _begin(writes, ONE, second)
    assert not second.has_begun
    first.may_end.set()
    second.may_end.set()
    await second_task
    assert first.has_ended


async def test_log_directories_do_not_wait_for_each_other() -> None:
    writes, first, second = DirectoryWrites(), Writer(), Writer()
    first_task = await _begin(writes, ONE, first)
    second.may_end.set()
    await writes.run(TWO, second)
    assert not first_task.done()
    first.may_end.set()
    await first_task


async def test_settle_waits_for_writes_without_a_caller() -> None:
    writes, writer = DirectoryWrites(), Writer()
    cancelled = await _begin(writes, ONE, writer)
    cancelled.cancel()
    settling = asyncio.create_task(writes.settle())
    await asyncio.sleep(0)
    assert not settling.done()
    writer.may_end.set()
    await settling
    assert writer.has_ended
