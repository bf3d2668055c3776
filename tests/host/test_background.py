"""Long work runs in a process of its own, which ends with the process that started it."""

import io
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import aclosing

import psutil
import pytest

from odradek.host import background as background_module
from odradek.host.background import FRAME, PROGRESS, BackgroundContext, BackgroundEnded, BackgroundProcess
from odradek.host.background_main import NICENESS, _Progress

LOWEST_PRIORITY = 19


def count(room: BackgroundContext, end: int, *, fails: bool = False) -> Iterator[tuple[int, int]]:
    for number in range(end):
        yield os.getpid(), number
    if fails:
        raise FileNotFoundError(2, "gone", "/a/path")


def never_end(room: BackgroundContext) -> Iterator[int]:
    yield os.getpid()
    while True:
        room.monotonic_ms()


async def test_items_come_from_another_process_and_the_next_work_is_done_there_too() -> None:
    background = BackgroundProcess()
    try:
        items = [item async for item in background.stream(count, 3)]
        assert [number for _, number in items] == [0, 1, 2]
        (process_id,) = {process_id for process_id, _ in items}
        assert process_id != os.getpid()
        assert [item async for item in background.stream(count, 1)] == [(process_id, 0)]
        assert psutil.Process(process_id).nice() == min(LOWEST_PRIORITY, psutil.Process().nice() + NICENESS)
    finally:
        await background.close()
    assert not psutil.pid_exists(process_id)


async def test_what_the_work_raises_is_raised_and_the_process_lives_on() -> None:
    background = BackgroundProcess()
    try:
        first = [item async for item in background.stream(count, 1)]
        with pytest.raises(FileNotFoundError, match="/a/path"):
            async for _ in background.stream(count, 1, fails=True):
                pass
        assert [item async for item in background.stream(count, 1)] == first, "the same process id"
    finally:
        await background.close()


async def test_work_that_is_closed_before_its_end_is_ended() -> None:
    background = BackgroundProcess()
    async with aclosing(background.stream(never_end)) as items:
        process_id = await anext(items)
    assert not psutil.pid_exists(process_id)
    assert len([item async for item in background.stream(count, 2)]) == 2
    await background.close()


async def test_work_that_makes_no_progress_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may wait for a disk that hangs, and others wait for their turn."""
    background = BackgroundProcess()
    items = background.stream(never_end)
    process_id = await anext(items)
    monkeypatch.setattr(background_module, "STALLED_S", 0.5)
    with pytest.raises(BackgroundEnded, match="no progress"):
        await anext(items)
    assert not psutil.pid_exists(process_id)
    monkeypatch.undo()
    assert len([item async for item in background.stream(count, 2)]) == 2
    await background.close()


def test_progress_is_reported_at_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = [0.0]
    monkeypatch.setattr("odradek.host.background_main.time.monotonic", lambda: now_s[0])
    answers = io.BytesIO()
    progress = _Progress(answers)
    for _ in range(100):
        now_s[0] += 1.0
        progress.report()
    frame = FRAME.pack(PROGRESS, len(pickle.dumps(None))) + pickle.dumps(None)
    assert answers.getvalue() == frame * 10


async def test_a_process_that_was_killed_is_reported_and_replaced() -> None:
    background = BackgroundProcess()
    try:
        items = background.stream(never_end)
        os.kill(await anext(items), signal.SIGKILL)
        with pytest.raises(BackgroundEnded):
            await anext(items)
        assert len([item async for item in background.stream(count, 2)]) == 2
    finally:
        await background.close()


def test_it_ends_when_its_broker_is_killed_even_in_the_middle_of_work() -> None:
    program = (
        "import asyncio, tests.host.test_background as t\n"
        "async def main():\n"
        "    items = t.BackgroundProcess().stream(t.never_end)\n"
        "    print(await anext(items), flush=True)\n"
        "    await asyncio.Event().wait()\n"
        "asyncio.run(main())\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as broker:
        assert broker.stdout is not None
        worker = psutil.Process(int(broker.stdout.readline()))
        broker.kill()
    worker.wait(timeout=30)
