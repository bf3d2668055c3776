"""The contract of a metadata store, as tests: each implementation subclasses `StoreContract` with a factory of its own.

Stores that one factory opens share their data, as the stores of several brokers do.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Sequence
from typing import Protocol

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from odradek.configuration.config_types import ConfigResourceType
from odradek.metadata.changes import Change, ConfigsChanged, ProducerIdsAllocated, TopicCreated
from odradek.metadata.commit_parts import MAX_COMMIT_BYTES, MAX_PART_BYTES, encode_commit
from odradek.metadata.entities import PartitionImage, TopicImage
from odradek.metadata.image import MetadataImage
from odradek.metadata.snapshot import empty_image
from odradek.metadata.store import CommitOutcome, CommitTooLarge, MetadataStore
from odradek.metadata.zookeeper_store import ZooKeeperStore
from tests.example_counts import examples
from tests.metadata.random_changes import commits


class StoreFactory(Protocol):
    history_commits: int
    """After this many commits the first of them is not in the history any more."""

    def open(self) -> MetadataStore: ...

    def open_watching(self, store: MetadataStore) -> MetadataStore:
        """A store whose watchers are called for commits through `store`."""

    def open_dying(self, operations: int, *, after: bool) -> MetadataStore:
        """A store whose process dies at its n-th operation on the storage, before or after it is carried out."""

    def bury(self, store: MetadataStore) -> None:
        """What the operating system does for a process that died."""

    def fresh(self) -> StoreFactory:
        """A factory with empty storage."""


def large_topic(partition_count: int = 10_000) -> TopicCreated:
    brokers = (1, 2, 3)
    partitions = (
        PartitionImage(index, brokers, (), 1, 0, 0, brokers, brokers, brokers, brokers)
        for index in range(partition_count)
    )
    return TopicCreated(TopicImage("large", uuid.UUID(int=7), tuple(partitions), is_internal=False))


async def commit_all(store: MetadataStore, image: MetadataImage, made: Sequence[Sequence[Change]]) -> MetadataImage:
    controller_epoch = await store.claim_controller(0)
    for changes in made:
        outcome = await store.commit(changes, expected_version=image.version, controller_epoch=controller_epoch)
        assert outcome is CommitOutcome.COMMITTED
        image = image.apply_all(changes)
        if isinstance(store, ZooKeeperStore):
            await store.settle()  # a snapshot in the background ends at a known version
    return image


class StoreContract:
    @pytest.fixture
    def factory(self) -> StoreFactory:
        raise NotImplementedError

    async def test_new_store_is_empty(self, factory: StoreFactory) -> None:
        store = factory.open()
        image = await store.load()
        assert (image.version, image.controller_epoch, image.topics, image.brokers) == (0, 0, {}, {})
        assert image.cluster_id == await store.cluster_id() == await factory.open().cluster_id()
        assert await store.changes_since(0) == []

    @settings(max_examples=examples(8), deadline=None, suppress_health_check=list(HealthCheck))
    @given(data=st.data())
    def test_image_is_the_fold_of_the_commits(self, factory: StoreFactory, data: st.DataObject) -> None:
        # Drawn before a store is open: threads of the ZooKeeper client use the random module, which Hypothesis notices.
        made = data.draw(commits(empty_image("of no cluster"), most=8))
        behind = data.draw(st.integers(0, len(made)))

        async def scenario() -> None:
            stores = factory.fresh()
            store = stores.open()
            first = await store.load()
            image = await commit_all(store, first, made)
            reader = stores.open()
            assert await store.load() == await reader.load() == image
            found = await reader.changes_since(len(made) - behind)
            assert found is not None
            assert [list(each.changes) for each in found] == made[len(made) - behind :]
            assert [each.version for each in found] == list(range(len(made) - behind + 1, len(made) + 1))
            await reader.close()
            await store.close()

        asyncio.run(scenario())

    async def test_stale_writer_changes_nothing(self, factory: StoreFactory) -> None:
        first, second = factory.open(), factory.open()
        epoch = await first.claim_controller(0)
        change = [ProducerIdsAllocated(1000)]
        assert await first.commit(change, expected_version=0, controller_epoch=epoch) is CommitOutcome.COMMITTED
        for version in (0, 2):
            outcome = await second.commit(
                [ProducerIdsAllocated(2000)], expected_version=version, controller_epoch=epoch
            )
            assert outcome is CommitOutcome.VERSION_CONFLICT
        assert (await second.load()).next_producer_id == 1000

    async def test_claim_fences_every_earlier_controller(self, factory: StoreFactory) -> None:
        first, second = factory.open(), factory.open()
        old = await first.claim_controller(1)
        new = await second.claim_controller(2)
        assert new > old
        change = [ProducerIdsAllocated(1000)]
        for version in (0, 1):  # also with a version that does not fit
            outcome = await first.commit(change, expected_version=version, controller_epoch=old)
            assert outcome is CommitOutcome.FENCED
        assert (await first.load()).version == 0
        assert await second.commit(change, expected_version=0, controller_epoch=new) is CommitOutcome.COMMITTED
        found = await first.changes_since(0)
        assert found is not None
        assert [(each.version, each.controller_epoch) for each in found] == [(1, new)]
        assert await factory.open().claim_controller(1) > new

    async def test_concurrent_claims_have_different_epochs(self, factory: StoreFactory) -> None:
        epochs = await asyncio.gather(*(factory.open().claim_controller(node_id) for node_id in range(6)))
        assert sorted(epochs) == list(range(min(epochs), min(epochs) + 6))

    async def test_concurrent_commits_are_ordered_and_none_is_lost(self, factory: StoreFactory) -> None:
        epoch = await factory.open().claim_controller(0)

        async def allocate(store: MetadataStore, times: int) -> None:
            while times:
                image = await store.load()
                change = [ProducerIdsAllocated(image.next_producer_id + 1)]
                outcome = await store.commit(change, expected_version=image.version, controller_epoch=epoch)
                assert outcome is not CommitOutcome.FENCED
                times -= outcome is CommitOutcome.COMMITTED

        await asyncio.gather(*(allocate(factory.open(), 5) for _ in range(4)))
        found = await factory.open().changes_since(0)
        assert found is not None
        assert [(each.version, list(each.changes)) for each in found] == [
            (number, [ProducerIdsAllocated(number)]) for number in range(1, 21)
        ]

    async def test_huge_commit_is_one_commit(self, factory: StoreFactory) -> None:
        """A load while it is written shows all of it or nothing."""
        store, reader = factory.open(), factory.open()
        change = large_topic()
        assert len(encode_commit([change])) > 1, "the commit needs several parts"
        before = await store.load()
        committing = asyncio.ensure_future(commit_all(store, before, [[change]]))
        after = before.apply(change)
        while not committing.done():
            assert await reader.load() in (before, after)
        assert await committing == await reader.load() == after
        found = await reader.changes_since(0)
        assert found is not None
        assert [list(each.changes) for each in found] == [[change]]

    async def test_commit_above_the_limit_is_refused_and_changes_nothing(self, factory: StoreFactory) -> None:
        store = factory.open()
        epoch = await store.claim_controller(0)
        text = "x" * (1 << 20)
        changes = [
            ConfigsChanged(ConfigResourceType.GROUP, f"g{number}", {"a": text})
            for number in range(MAX_COMMIT_BYTES >> 20)
        ]
        with pytest.raises(CommitTooLarge):
            await store.commit(changes, expected_version=0, controller_epoch=epoch)
        assert (await store.load()).version == 0
        outcome = await store.commit(changes[:2], expected_version=0, controller_epoch=epoch)
        assert outcome is CommitOutcome.COMMITTED

    @pytest.mark.parametrize("after", [False, True])
    async def test_crash_leaves_all_of_a_commit_or_nothing(self, factory: StoreFactory, after: bool) -> None:
        """At every operation of a commit of several parts, and the outcome can be read afterwards."""
        survivor = factory.open()
        text = "x" * (MAX_PART_BYTES // 2)
        image = await survivor.load()
        crashes = happened = 0
        while True:
            epoch = await survivor.claim_controller(0)
            changes = [
                ConfigsChanged(ConfigResourceType.GROUP, f"g{number}", {"a": f"{crashes}{text}"}) for number in range(4)
            ]
            dying = factory.open_dying(crashes, after=after)
            has_crashed = False
            try:
                outcome = await dying.commit(changes, expected_version=image.version, controller_epoch=epoch)
                assert outcome is CommitOutcome.COMMITTED
            except Exception:
                has_crashed = True
            factory.bury(dying)
            found = await survivor.changes_since(image.version)
            assert found is not None
            if found:
                happened += has_crashed
                ((version, controller_epoch, made),) = found
                assert (version, controller_epoch, list(made)) == (image.version + 1, epoch, changes)
                image = image.apply_all(changes)
            assert await survivor.load() == image
            if not has_crashed:
                break
            crashes += 1
        assert crashes > 3
        assert found
        assert happened or not after, "a commit that raised had happened, and was found by reading"

    async def test_watchers_are_called_for_every_commit(self, factory: StoreFactory) -> None:
        store = factory.open()
        watching = factory.open_watching(store)
        epoch = await store.claim_controller(0)
        calls = [asyncio.Event(), asyncio.Event()]
        for called in calls:
            watching.watch(called.set)
        for version in range(3):
            for called in calls:
                called.clear()
            change = [ProducerIdsAllocated(version)]
            outcome = await store.commit(change, expected_version=version, controller_epoch=epoch)
            assert outcome is CommitOutcome.COMMITTED
            async with asyncio.timeout(30):
                await asyncio.gather(*(called.wait() for called in calls))
            found = await watching.changes_since(version)
            assert found is not None
            assert [each.version for each in found] == [version + 1], "the commit is visible when the watcher is called"

    async def test_history_is_compacted_and_the_image_stays(self, factory: StoreFactory) -> None:
        store = factory.open()
        image = await store.load()
        changes = [[ProducerIdsAllocated(number)] for number in range(1, factory.history_commits + 1)]
        image = await commit_all(store, image, changes)
        assert await store.changes_since(0) is None, "too old: the reader must load"
        assert await store.load() == await factory.open().load() == image
        found = await store.changes_since(image.version - 1)
        assert found is not None
        assert [list(each.changes) for each in found] == [changes[-1]], "the newest commits stay"
        assert await store.changes_since(image.version) == []
