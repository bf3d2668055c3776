"""Blocking work runs beside the event loop, and its outcome comes back."""

import asyncio
import threading

import pytest

from odradek.host.host import real_host
from odradek.host.workers import ThreadWorkers


async def test_work_runs_on_another_thread_and_returns() -> None:
    workers = ThreadWorkers()
    assert await workers.run(lambda left, right: left + right, 2, 3) == 5
    assert await workers.run(threading.get_ident) != threading.get_ident()
    workers.close()


async def test_an_exception_comes_back() -> None:
    workers = ThreadWorkers(1)
    with pytest.raises(ZeroDivisionError):
        await workers.run(divmod, 1, 0)
    workers.close()


async def test_the_real_host_has_every_door() -> None:
    host = real_host()
    assert await host.workers.run(host.disk.exists, "/")
    assert host.clock.now_ms() > 0
    assert host.entropy.uuid() != host.entropy.uuid()
    host.workers.close()


async def test_each_log_directory_has_threads_of_its_own() -> None:
    workers = ThreadWorkers(1)
    hung, may_end = threading.Event(), threading.Event()

    def hang() -> None:
        hung.set()
        may_end.wait()

    one, two = workers.for_directory("/one"), workers.for_directory("/two")
    assert workers.for_directory("/one") == one
    running = asyncio.ensure_future(one.flushes.run(hang))
    assert await workers.run(hung.wait, 10)
    async with asyncio.timeout(10):
        for pool in (one.files, two.flushes, two.files, workers):
            assert await pool.run(threading.get_ident) != threading.get_ident()
    assert not running.done()
    may_end.set()
    await running
    workers.close()
