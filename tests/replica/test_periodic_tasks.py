"""Tasks of which at most one runs per key."""

import asyncio

import pytest

from odradek.replica.periodic_tasks import SingleTasks


async def test_a_task_that_hangs_keeps_only_its_own_key_from_running() -> None:
    tasks, may_end, ended = SingleTasks(), asyncio.Event(), []

    async def hang() -> None:
        await may_end.wait()
        ended.append("hung")

    async def work() -> None:
        ended.append("other")

    tasks.begin("one", hang, "hanging work")
    tasks.begin("one", work, "work")
    tasks.begin("two", work, "work")
    await asyncio.sleep(0)
    assert ended == ["other"]
    may_end.set()
    await tasks.settle()
    assert ended == ["other", "hung"]
    tasks.begin("one", work, "work")
    await tasks.settle()
    assert ended == ["other", "hung", "other"]


async def test_a_failure_is_logged_and_the_next_run_begins(caplog: pytest.LogCaptureFixture) -> None:
    tasks, runs = SingleTasks(), []

    async def fail() -> None:
        runs.append(1)
        raise ValueError("no")

    for _ in range(2):
        tasks.begin("key", fail, "work")
        await tasks.settle()
    assert len(runs) == 2
    assert caplog.messages == ["periodic work failed"] * 2
    caplog.clear()


async def test_work_begins_between_the_end_of_a_task_and_its_callback() -> None:
    tasks, runs = SingleTasks(), []

    async def work() -> None:
        runs.append(1)
        if len(runs) == 1:  # the callback of this task is called after this one
            asyncio.get_running_loop().call_soon(tasks.begin, "key", work, "work")

    tasks.begin("key", work, "work")
    await asyncio.sleep(0)
    await tasks.settle()
    assert len(runs) == 2
    assert not tasks.is_running
