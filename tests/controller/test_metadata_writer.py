"""The controller's writer: conflicts are decided again, exceptions are resolved by reading, fenced controllers stop."""

import asyncio
import gc
from collections.abc import Sequence
from typing import Any

import pytest

from odradek.configuration.broker_configs import BrokerConfig
from odradek.controller import controller
from odradek.controller.decisions.topics import Cluster
from odradek.controller.metadata_writer import ATTEMPTS, ControllerFenced, MetadataWriter
from odradek.controller.requests import ChangeRequest
from odradek.metadata.changes import Change, ControllerElected, ProducerIdsAllocated
from odradek.metadata.image import InvalidChange
from odradek.metadata.store import Commit, CommitOutcome, StoreError
from odradek.protocol.refusal import Refusal
from tests.metadata.inline_host import CountingEntropy
from tests.metadata.key_value_store import Disconnected, Failure, KeyValueStore, Table

# The operations of a commit in `KeyValueStore`: read the head, write the only part, replace the head.
REPLACE_HEAD = 2


class Bench:
    def __init__(self, table: Table | None = None, store: KeyValueStore | None = None) -> None:
        self.table = table or Table()
        self.store = store or KeyValueStore(self.table)
        self.writer = MetadataWriter(self.store, BrokerConfig.from_properties({}), CountingEntropy())

    def break_at(self, operation: int, failure: Failure) -> None:
        self.store.connection.failing_operation = operation
        self.store.connection.failure = failure

    async def allocate(self) -> int:
        return (await self.writer.write(allocate_one)).result

    async def log(self) -> Sequence[Commit]:
        commits = await KeyValueStore(self.table).changes_since(0)
        assert commits is not None
        return commits


def allocate_one(cluster: Cluster) -> tuple[int, list[Change]]:
    first = cluster.image.next_producer_id
    return first, [ProducerIdsAllocated(first + 1)]


async def test_decision_is_committed_and_applied_to_the_image() -> None:
    bench = Bench()
    await bench.writer.claim()
    assert await bench.writer.write(allocate_one) == (0, 1)
    assert await bench.writer.write(allocate_one) == (1, 2)
    assert await bench.writer.write(lambda cluster: (cluster.image.next_producer_id, [])) == (2, 2)
    assert [commit.version for commit in await bench.log()] == [1, 2]


class AllocateOne(ChangeRequest[int]):
    def decide(self, cluster: Cluster) -> tuple[int, list[Change]]:
        return allocate_one(cluster)

    def refuse(self, refusal: Refusal) -> int:
        return refusal.error


class BrokerAllocateOne(AllocateOne):
    is_limited = False


class HeldStore(KeyValueStore):
    """Commits wait until they are released."""

    def __init__(self, table: Table) -> None:
        super().__init__(table)
        self.released = asyncio.Event()

    async def commit(self, changes: Sequence[Change], **version: Any) -> CommitOutcome:
        await self.released.wait()
        return await super().commit(changes, **version)


async def test_write_that_gets_no_turn_within_its_timeout_is_not_made() -> None:
    table = Table()
    store = HeldStore(table)
    bench = Bench(table, store)
    await bench.writer.claim()
    first = asyncio.ensure_future(bench.allocate())
    late = asyncio.ensure_future(bench.writer.write(lambda _: (None, [ControllerElected(7, 9)]), 10))
    patient = asyncio.ensure_future(bench.allocate())
    await asyncio.sleep(0)
    late.cancel()  # its client has disconnected, too
    await asyncio.wait(bench.writer._writes, return_when=asyncio.FIRST_COMPLETED)
    store.released.set()
    assert (await first, await patient) == (0, 1)
    assert [list(commit.changes) for commit in await bench.log()] == [
        [ProducerIdsAllocated(1)],
        [ProducerIdsAllocated(2)],
    ]


async def test_requests_that_wait_are_limited_and_those_of_brokers_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controller, "MOST_WAITING_REQUESTS", 1)
    table = Table()
    store = HeldStore(table)
    bench = Bench(table, store)
    await bench.writer.claim()

    async def request(*, is_limited: bool) -> Any:
        kind = AllocateOne if is_limited else BrokerAllocateOne
        return (await controller.write_request(bench.writer, kind())).result

    first = asyncio.ensure_future(request(is_limited=True))
    await asyncio.sleep(0)
    with pytest.raises(StoreError, match="1 changes of the metadata wait"):
        await request(is_limited=True)
    of_broker = asyncio.ensure_future(request(is_limited=False))
    store.released.set()
    assert (await first, await of_broker) == (0, 1)


async def test_image_before_the_claim_is_a_bug() -> None:
    with pytest.raises(RuntimeError):
        _ = Bench().writer.image


async def test_commit_that_happened_before_the_connection_broke_is_answered() -> None:
    bench = Bench()
    await bench.writer.claim()
    bench.break_at(REPLACE_HEAD, Failure.BEFORE)
    assert await bench.allocate() == 0
    assert await bench.allocate() == 1
    assert len(await bench.log()) == 2


async def test_commit_that_did_not_happen_is_an_error_and_changes_nothing() -> None:
    bench = Bench()
    await bench.writer.claim()
    for operation in range(REPLACE_HEAD + 1):
        bench.break_at(operation, Failure.NEVER)
        with pytest.raises(Disconnected):
            await bench.allocate()
        assert not await bench.log()
    assert await bench.allocate() == 0


async def test_commit_that_arrives_after_its_error_is_found_by_the_next_decision() -> None:
    bench = Bench()
    await bench.writer.claim()
    bench.break_at(REPLACE_HEAD, Failure.LATE)
    with pytest.raises(Disconnected):
        await bench.allocate()
    (arrive,) = bench.table.late
    arrive()
    assert await bench.allocate() == 1


async def test_late_commit_of_an_earlier_decision_is_not_taken_for_the_present_one() -> None:
    """Both have the same version and controller epoch: only the changes tell them apart."""
    bench = Bench()
    await bench.writer.claim()
    bench.break_at(REPLACE_HEAD, Failure.LATE)
    with pytest.raises(Disconnected):
        await bench.allocate()
    (arrive,) = bench.table.late

    def decide(cluster: Cluster) -> tuple[str, list[Change]]:
        arrive()
        bench.break_at(0, Failure.NEVER)
        return "elected", [ControllerElected(7, 9)]

    with pytest.raises(Disconnected):
        await bench.writer.write(decide)
    assert [list(commit.changes) for commit in await bench.log()] == [[ProducerIdsAllocated(1)]]


async def test_unreadable_store_leaves_the_outcome_open() -> None:
    class Unreadable(KeyValueStore):
        is_readable = True

        async def changes_since(self, version: int) -> Any:
            if not self.is_readable:
                raise StoreError("no answer")
            return await super().changes_since(version)

    table = Table()
    store = Unreadable(table)
    bench = Bench(table, store)
    await bench.writer.claim()
    bench.break_at(REPLACE_HEAD, Failure.BEFORE)
    store.is_readable = False
    with pytest.raises(Disconnected):
        await bench.allocate()
    with pytest.raises(StoreError, match="no answer"):
        await bench.allocate()
    store.is_readable = True
    assert await bench.allocate() == 1, "the first commit had happened"


class WithoutHistory(KeyValueStore):
    """A store that keeps no commits, only the newest image."""

    async def changes_since(self, version: int) -> Any:
        return None


async def test_commit_that_happened_is_found_in_the_image_when_its_history_is_gone() -> None:
    table = Table()
    bench = Bench(table, WithoutHistory(table))
    await bench.writer.claim()
    bench.break_at(REPLACE_HEAD, Failure.BEFORE)
    assert await bench.allocate() == 0
    assert bench.writer.image.version == 1


async def test_commit_that_did_not_happen_is_an_error_when_the_history_is_gone() -> None:
    table = Table()
    bench = Bench(table, WithoutHistory(table))
    await bench.writer.claim()
    bench.break_at(REPLACE_HEAD, Failure.NEVER)
    with pytest.raises(Disconnected):
        await bench.allocate()
    assert await bench.allocate() == 0


async def test_commit_of_another_decision_in_the_image_is_not_taken_for_the_present_one() -> None:
    table = Table()
    bench = Bench(table, WithoutHistory(table))
    await bench.writer.claim()
    epoch = bench.writer.controller_epoch
    other = KeyValueStore(table)
    assert await other.commit([ProducerIdsAllocated(40)], expected_version=0, controller_epoch=epoch)
    bench.break_at(0, Failure.NEVER)
    with pytest.raises(Disconnected):
        await bench.allocate()
    assert await bench.allocate() == 40


async def test_outcome_behind_later_commits_without_history_is_left_open() -> None:
    """The image shows that other commits followed, not which commit had the version of this one."""
    table = Table()
    bench = Bench(table, WithoutHistory(table))
    await bench.writer.claim()
    epoch = bench.writer.controller_epoch
    store = bench.store
    commit = store.commit

    async def commit_then_fail(changes: Sequence[Change], **condition: Any) -> CommitOutcome:
        await commit(changes, **condition)
        await KeyValueStore(table).commit([ProducerIdsAllocated(9)], expected_version=1, controller_epoch=epoch)
        store.commit = commit  # type: ignore[method-assign]  # a store that fails once
        raise Disconnected

    store.commit = commit_then_fail  # type: ignore[method-assign]
    with pytest.raises(Disconnected):
        await bench.allocate()
    assert await bench.allocate() == 9


async def test_commit_of_another_writer_is_read_and_the_decision_made_again() -> None:
    bench = Bench()
    await bench.writer.claim()
    epoch = bench.writer.controller_epoch
    await KeyValueStore(bench.table).commit([ProducerIdsAllocated(5000)], expected_version=0, controller_epoch=epoch)
    assert await bench.allocate() == 5000


async def test_far_behind_writer_loads() -> None:
    table = Table()
    bench = Bench(table, KeyValueStore(table, history=2))
    await bench.writer.claim()
    for version in range(8):
        await KeyValueStore(table, history=2).commit(
            [ProducerIdsAllocated(version)], expected_version=version, controller_epoch=bench.writer.controller_epoch
        )
    assert await bench.allocate() == 7


async def test_store_that_always_changes_is_given_up() -> None:
    class Contended(KeyValueStore):
        attempts = 0

        async def commit(self, *_: Any, **__: Any) -> CommitOutcome:
            self.attempts += 1
            return CommitOutcome.VERSION_CONFLICT

    table = Table()
    store = Contended(table)
    bench = Bench(table, store)
    await bench.writer.claim()
    with pytest.raises(StoreError, match="is another broker using it"):
        await bench.allocate()
    assert store.attempts == ATTEMPTS


async def test_earlier_controller_is_fenced_until_it_claims_again() -> None:
    first = Bench()
    second = Bench(first.table)
    await first.writer.claim()
    assert await first.allocate() == 0
    await second.writer.claim()
    with pytest.raises(ControllerFenced):
        await first.allocate()
    assert await second.allocate() == 1
    await first.writer.claim()
    assert await first.allocate() == 2
    with pytest.raises(ControllerFenced):
        await second.allocate()


async def test_changes_that_contradict_the_image_are_not_committed() -> None:
    bench = Bench()
    await bench.writer.claim()
    with pytest.raises(InvalidChange):
        await bench.writer.write(lambda _: (None, [ControllerElected(0, 0)]))
    assert not await bench.log()
    assert await bench.allocate() == 0


async def test_stopping_finishes_what_is_being_written_and_accepts_nothing_more() -> None:
    bench = Bench()
    await bench.writer.claim()
    writing = asyncio.ensure_future(bench.allocate())
    await asyncio.sleep(0)
    writing.cancel()
    await bench.writer.stop_writing()
    assert len(await bench.log()) == 1, "also when the caller has gone"
    with pytest.raises(StoreError, match="stopping"):
        await bench.allocate()
    with pytest.raises(asyncio.CancelledError):
        await writing


@pytest.mark.parametrize("is_bug", [False, True])
async def test_failure_after_the_caller_was_cancelled_is_logged(
    caplog: pytest.LogCaptureFixture, *, is_bug: bool
) -> None:
    """Nobody awaits the write: asyncio would report its exception as never retrieved."""
    unhandled: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unhandled.append(context))

    def decide(cluster: Cluster) -> tuple[int, list[Change]]:
        return (1 // 0, []) if is_bug else allocate_one(cluster)

    bench = Bench()
    await bench.writer.claim()
    await Bench(bench.table).writer.claim()
    writing = asyncio.ensure_future(bench.writer.write(decide))
    await asyncio.sleep(0)
    writing.cancel()
    await bench.writer.stop_writing()
    with pytest.raises(asyncio.CancelledError):
        await writing
    gc.collect()
    assert not unhandled
    (logged,) = caplog.records
    assert logged.getMessage() == "a metadata write failed after its caller was cancelled"
    assert (logged.exc_info is not None) == is_bug
