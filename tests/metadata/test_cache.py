"""The cache: commits are applied in order by one applier, and requests wait for their version."""

import asyncio
import logging
from typing import Any

import pytest

from odradek.configuration.broker_configs import BrokerConfig
from odradek.configuration.config_types import ConfigResourceType
from odradek.host.clock import Timer
from odradek.metadata import cache as cache_module
from odradek.metadata.cache import MetadataCache
from odradek.metadata.changes import Change, ConfigsChanged, ProducerIdsAllocated
from odradek.metadata.image import MetadataImage
from odradek.metadata.store import CommitOutcome, StoreError
from tests.metadata.inline_host import inline_host
from tests.metadata.key_value_store import Disconnected, Failure, KeyValueStore, Table

FUSSY_CONFIG = BrokerConfig.from_properties({"node.id": "0", "log.cleaner.max.compaction.lag.ms": "1000"})


class Bench:
    def __init__(self, history: int = 100) -> None:
        self.table = Table()
        self.writer = KeyValueStore(self.table, history)
        self.store = KeyValueStore(self.table, history)
        self.cache = MetadataCache(self.store, BrokerConfig.from_properties({}), inline_host().clock)
        self.version = 0
        self.epoch: int | None = None

    async def commit(self, *changes: Change) -> int:
        if self.epoch is None:
            self.epoch = await self.writer.claim_controller(0)
        made = changes or (ProducerIdsAllocated(self.version + 1),)
        outcome = await self.writer.commit(made, expected_version=self.version, controller_epoch=self.epoch)
        assert outcome is CommitOutcome.COMMITTED
        self.version += 1
        return self.version


async def test_image_before_loading_is_a_bug() -> None:
    with pytest.raises(RuntimeError):
        _ = Bench().cache.image


async def test_commits_are_applied_one_after_the_other() -> None:
    bench = Bench()
    await bench.cache.load()
    followed: list[tuple[int, int, int]] = []
    running = 0

    async def follow(before: MetadataImage, after: MetadataImage) -> None:
        nonlocal running
        running += 1
        assert running == 1
        for _ in range(5):
            await asyncio.sleep(0)
        assert bench.cache.image is after
        followed.append((before.version, after.version, bench.cache.applied_version))
        running -= 1

    bench.cache.subscribe(follow)
    for _ in range(4):
        await bench.commit()
    await bench.cache.wait_until_applied(4)
    assert followed == [(version, version + 1, version) for version in range(4)]
    assert bench.cache.applied_version == 4


async def test_waiting_requests_continue_once_every_subscriber_has_followed() -> None:
    bench = Bench()
    await bench.cache.load()
    entered, may_go_on = asyncio.Event(), asyncio.Event()

    async def follow(before: MetadataImage, after: MetadataImage) -> None:
        entered.set()
        await may_go_on.wait()

    bench.cache.subscribe(follow)
    await bench.commit()
    waiting = asyncio.ensure_future(bench.cache.wait_until_applied(1))
    later = asyncio.ensure_future(bench.cache.wait_until_applied(2))
    await entered.wait()
    assert bench.cache.image.version == 1
    assert not waiting.done()
    may_go_on.set()
    await waiting
    assert not later.done()
    await bench.commit()
    await later


async def test_failing_subscriber_is_logged_and_the_others_follow(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench()
    await bench.cache.load()
    followed: list[int] = []

    def fail(before: MetadataImage, after: MetadataImage) -> None:
        raise OSError("disk full")

    bench.cache.subscribe(fail)
    bench.cache.subscribe(lambda before, after: followed.append(after.version))
    with caplog.at_level(logging.ERROR):
        await bench.cache.wait_until_applied(await bench.commit())
    assert followed == [1]
    assert "a subscriber failed to follow the metadata" in caplog.text
    caplog.clear()


async def _nothing() -> None: ...


async def test_a_failing_subscriber_is_called_again_with_the_image_that_it_followed_last(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(cache_module, "RETRY_AFTER_MS", 1.0)
    bench = Bench()
    await bench.cache.load()
    called: list[tuple[int, int]] = []
    has_followed = asyncio.Event()

    def follow(before: MetadataImage, after: MetadataImage) -> None:
        called.append((before.version, after.version))
        if len(called) < 5:
            raise OSError("disk full")
        has_followed.set()

    first: list[int] = []
    later: list[tuple[int, int]] = []
    bench.cache.subscribe(lambda before, after: first.append(after.version))
    bench.cache.subscribe(follow)
    bench.cache.subscribe(lambda before, after: later.append((before.version, after.version)))
    for _ in range(2):
        await bench.cache.wait_until_applied(await bench.commit())
    await has_followed.wait()
    await bench.cache.run_in_order(_nothing)
    assert first == [1, 2]
    assert called[0] == (0, 1)
    assert called[-1] == (0, 2)
    assert later == [(0, 1), (1, 2), (0, 2)]
    assert caplog.text.count("a subscriber failed") == 1
    await bench.cache.wait_until_applied(await bench.commit())
    assert called[5:] == [(2, 3)]
    caplog.clear()


async def test_known_image_is_used_and_later_commits_are_applied() -> None:
    bench = Bench()
    await bench.commit()
    known = await bench.writer.load()
    await bench.commit()
    assert await bench.cache.load(known) is known
    await bench.cache.wait_until_applied(2)
    assert bench.cache.image == await bench.writer.load()
    assert bench.cache.image.topics is known.topics


async def test_cache_that_is_too_far_behind_loads() -> None:
    bench = Bench(history=2)
    await bench.cache.load()
    followed: list[tuple[int, int]] = []
    may_read = asyncio.Event()
    read = bench.store.changes_since

    async def changes_since(version: int) -> Any:
        await may_read.wait()
        return await read(version)

    bench.store.changes_since = changes_since  # type: ignore[method-assign]  # a store that answers otherwise
    bench.cache.subscribe(lambda before, after: followed.append((before.version, after.version)))
    for _ in range(8):
        await bench.commit()
    may_read.set()
    await bench.cache.wait_until_applied(8)
    assert followed == [(0, 8)]
    assert bench.cache.image == await bench.writer.load()


async def test_commit_while_loading_is_applied() -> None:
    bench = Bench()
    load = bench.store.load

    async def load_then_commit() -> MetadataImage:
        image = await load()
        await bench.commit()
        return image

    bench.store.load = load_then_commit  # type: ignore[method-assign]
    assert (await bench.cache.load()).version == 0
    await bench.cache.wait_until_applied(1)


class ManualClock:
    def __init__(self) -> None:
        self.timers: list[Any] = []

    def now_ms(self) -> int:
        return 0

    def monotonic_ms(self) -> float:
        return 0.0

    def call_after(self, delay_ms: float, callback: Any) -> Timer:
        assert delay_ms == cache_module.RETRY_AFTER_MS
        self.timers.append(callback)
        return ManualTimer(self.timers, callback)


class ManualTimer:
    def __init__(self, timers: list[Any], callback: Any) -> None:
        self._timers = timers
        self._callback = callback

    def cancel(self) -> None:
        if self._callback in self._timers:
            self._timers.remove(self._callback)


async def test_failed_read_fails_those_who_wait_and_is_retried(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench()
    clock = ManualClock()
    bench.cache = MetadataCache(bench.store, BrokerConfig.from_properties({}), clock)
    await bench.cache.load()
    waiting = asyncio.ensure_future(bench.cache.wait_until_applied(1))
    bench.store.connection.failing_operation, bench.store.connection.failure = 0, Failure.NEVER
    await bench.commit()
    with pytest.raises(Disconnected):
        await waiting
    assert bench.cache.applied_version == 0
    (retry,) = clock.timers
    retry()
    await bench.cache.wait_until_applied(1)
    await bench.cache.close()
    caplog.clear()


async def test_one_retry_is_due_after_several_failed_reads(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench()
    clock = ManualClock()
    bench.cache = MetadataCache(bench.store, BrokerConfig.from_properties({}), clock)
    await bench.cache.load()
    read = bench.store.changes_since

    async def fail(version: int) -> Any:
        raise Disconnected

    bench.store.changes_since = fail  # type: ignore[method-assign]
    for version in range(1, 5):
        await bench.commit()
        with pytest.raises(Disconnected):
            await bench.cache.wait_until_applied(version)
    assert len(clock.timers) == 1
    bench.store.changes_since = read  # type: ignore[method-assign]
    clock.timers[0]()
    await bench.cache.wait_until_applied(4)
    assert not clock.timers, "commits that were read need no retry"
    await bench.cache.close()
    caplog.clear()


async def test_jobs_run_between_commits() -> None:
    bench = Bench()
    await bench.cache.load()
    events: list[str] = []

    async def follow(before: MetadataImage, after: MetadataImage) -> None:
        events.append(f"begin {after.version}")
        for _ in range(3):
            await asyncio.sleep(0)
        events.append(f"end {after.version}")

    async def job() -> str:
        events.append("begin job")
        await bench.commit()
        for _ in range(3):
            await asyncio.sleep(0)
        events.append("end job")
        return "result"

    bench.cache.subscribe(follow)
    assert await bench.cache.run_in_order(job) == "result"
    await bench.cache.wait_until_applied(1)
    assert events == ["begin job", "end job", "begin 1", "end 1"]


async def test_failed_job_fails_its_caller_only() -> None:
    bench = Bench()
    await bench.cache.load()

    async def fail() -> None:
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        await bench.cache.run_in_order(fail)
    await bench.cache.wait_until_applied(await bench.commit())


async def test_job_of_a_cancelled_caller_runs_to_its_end() -> None:
    bench = Bench()
    await bench.cache.load()
    begun, may_end, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def job() -> None:
        begun.set()
        await may_end.wait()
        ended.set()

    caller = asyncio.ensure_future(bench.cache.run_in_order(job))
    await begun.wait()
    caller.cancel()
    may_end.set()
    await ended.wait()


async def test_closing_applies_what_is_committed_and_ends_every_wait() -> None:
    bench = Bench()
    await bench.cache.load()
    waiting = asyncio.ensure_future(bench.cache.wait_until_applied(2))
    await bench.commit()
    await bench.cache.close()
    assert bench.cache.applied_version == 1
    with pytest.raises(StoreError, match="stopping"):
        await waiting
    with pytest.raises(StoreError, match="stopping"):
        await bench.cache.wait_until_applied(2)
    with pytest.raises(StoreError, match="stopping"):
        await bench.cache.run_in_order(bench.writer.load)
    await bench.cache.wait_until_applied(1)
    await bench.commit()
    assert bench.cache.applied_version == 1


async def test_a_setting_that_cannot_be_used_stops_neither_the_commit_nor_the_start(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bench = Bench()
    bench.cache = MetadataCache(bench.store, FUSSY_CONFIG, inline_host().clock)
    await bench.cache.load()
    followed: list[int] = []
    bench.cache.subscribe(lambda _before, after: followed.append(after.version))
    lag = {"log.cleaner.min.compaction.lag.ms": "2000", "message.max.bytes": "300"}
    version = await bench.commit(ConfigsChanged(ConfigResourceType.BROKER, "0", lag))
    await bench.cache.wait_until_applied(version)
    assert followed == [version]
    assert bench.cache.broker_config.values["message.max.bytes"] == 300
    assert "a dynamic setting cannot be used on this broker" in caplog.text
    restarted = MetadataCache(bench.store, FUSSY_CONFIG, inline_host().clock)
    await restarted.load()
    assert restarted.broker_config.values["message.max.bytes"] == 300
