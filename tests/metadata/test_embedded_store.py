"""The embedded store: what was committed is there after a restart, and nothing else ever is."""

import asyncio
import sqlite3
import tempfile
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.configuration.config_types import ConfigResourceType
from odradek.host.real_disk import RealDisk
from odradek.metadata.changes import (
    Change,
    ClientQuotaChanged,
    ConfigsChanged,
    PartitionsAdded,
    PartitionsChanged,
    ProducerIdsAllocated,
    TopicCreated,
    TopicDeleted,
)
from odradek.metadata.embedded_store import EmbeddedStore
from odradek.metadata.image import MetadataImage, PartitionImage, TopicImage
from odradek.metadata.store import StoreError
from odradek.metadata.topic_names import is_internal
from tests.metadata.inline_host import inline_host

NAMES = ["a", "b.c", "__consumer_offsets", "d-e"]
broker_ids = st.lists(st.integers(0, 5), max_size=3).map(tuple)
texts = st.text(st.characters(codec="utf-8"), max_size=8)


def partitions(first: int, count: int) -> st.SearchStrategy[tuple[PartitionImage, ...]]:
    return st.tuples(
        *(
            st.builds(
                PartitionImage,
                st.just(index),
                broker_ids,
                broker_ids,
                st.integers(-1, 5),
                st.integers(0, 2**31 - 1),
                st.integers(0, 9),
            )
            for index in range(first, first + count)
        )
    )


@st.composite
def any_change(draw: st.DrawFn, image: MetadataImage) -> Change:
    """Some change that makes sense for this image."""
    topic_changes = st.sampled_from(sorted(image.topics)).map(lambda name: image.topics[name]) if image.topics else None
    kinds = ["configs", "quota", "ids"] + (["create"] if len(image.topics) < len(NAMES) else [])
    kinds += ["delete", "add", "change"] if topic_changes is not None else []
    kind = draw(st.sampled_from(kinds))
    if kind == "create":
        name = draw(st.sampled_from([name for name in NAMES if name not in image.topics]))
        made = draw(partitions(0, draw(st.integers(1, 3))))
        return TopicCreated(TopicImage(name, draw(st.uuids(version=4)), made, is_internal(name)))
    if kind == "configs":
        resource_type = draw(st.sampled_from([ConfigResourceType.BROKER, ConfigResourceType.GROUP]))
        values = draw(st.dictionaries(st.sampled_from("xyz"), st.none() | texts, min_size=1))
        return ConfigsChanged(resource_type, draw(texts), values)
    if kind == "quota":
        entity = draw(
            st.frozensets(st.tuples(st.sampled_from(["user", "ip"]), st.none() | texts), min_size=1, max_size=1)
        )
        return ClientQuotaChanged(
            entity, draw(st.dictionaries(st.sampled_from("xyz"), st.none() | st.floats(0, 1e9), min_size=1))
        )
    if kind == "ids":
        return ProducerIdsAllocated(image.next_producer_id + draw(st.integers(1, 1000)))
    assert topic_changes is not None
    topic = draw(topic_changes)
    if kind == "delete":
        return TopicDeleted(topic.topic_id)
    if kind == "add":
        return PartitionsAdded(topic.topic_id, draw(partitions(len(topic.partitions), draw(st.integers(1, 2)))))
    return PartitionsChanged(topic.topic_id, draw(partitions(0, 1)))


async def close_and_load(store: EmbeddedStore) -> MetadataImage:
    await store.close()
    return await store.load()


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_reopened_store_has_the_image_that_the_changes_gave(data: st.DataObject) -> None:
    async def scenario() -> None:
        with tempfile.TemporaryDirectory() as directory:
            store = EmbeddedStore(inline_host(), f"{directory}/metadata", 3)
            image = await store.load()
            for _ in range(data.draw(st.integers(1, 12))):
                changes: list[Change] = []
                after = image
                for _ in range(data.draw(st.integers(1, 3))):
                    changes.append(data.draw(any_change(after)))
                    after = after.apply(changes[-1])
                assert not await store.commit(changes, image.version + 1)
                assert await store.commit(changes, image.version)
                image = image.apply_all(changes)
                if data.draw(st.booleans()):
                    assert await close_and_load(store) == image
            assert await close_and_load(store) == image
            await store.close()

    asyncio.run(scenario())


PARTITION = PartitionImage(0, (0, 1), (0,), 0, 2, 3)
CHANGES: Sequence[Change] = (
    TopicCreated(TopicImage("t", uuid.UUID(int=1), (PARTITION,), is_internal=False)),
    ConfigsChanged(ConfigResourceType.TOPIC, "t", {"retention.ms": "1"}),
    ClientQuotaChanged(frozenset({("user", None)}), {"x": 1.5}),
    ProducerIdsAllocated(1000),
)


class Crash(Exception):
    pass


class CrashingConnection:
    """Lets some statements through, then fails as if the process had died there."""

    def __init__(self, connection: sqlite3.Connection, statements_left: int) -> None:
        self._connection = connection
        self.statements_left = statements_left

    def _count(self) -> None:
        if self.statements_left <= 0:
            raise Crash
        self.statements_left -= 1

    def execute(self, *args: Any) -> sqlite3.Cursor:
        self._count()
        return self._connection.execute(*args)

    def executemany(self, *args: Any) -> sqlite3.Cursor:
        self._count()
        return self._connection.executemany(*args)

    @property
    def in_transaction(self) -> bool:
        return False  # whoever died does not roll back either

    def close(self) -> None:
        self._connection.close()


class CrashingDisk(RealDisk):
    def __init__(self, statements_left: int) -> None:
        self.statements_left = statements_left
        self.connections: list[CrashingConnection] = []

    def open_database(self, path: str) -> sqlite3.Connection:
        self.connections.append(CrashingConnection(super().open_database(path), self.statements_left))
        return cast("sqlite3.Connection", self.connections[-1])


async def test_half_written_change_never_shows(tmp_path: Path) -> None:
    path = str(tmp_path / "metadata")
    store = EmbeddedStore(inline_host(), path, 0)
    before = await store.load()
    await store.close()
    after = before.apply_all(CHANGES)
    for statement in range(100):
        disk = CrashingDisk(statement)
        dying = EmbeddedStore(inline_host(disk), path, 0)
        try:
            survived = await dying.commit(CHANGES, before.version)
        except Crash:
            survived = False
        for connection in disk.connections:
            connection.close()
        found = await store.load()
        await store.close()
        assert found == (after if survived else before)
        if survived:
            break
    assert survived
    assert statement > len(CHANGES)


async def test_half_made_schema_never_shows(tmp_path: Path) -> None:
    path = str(tmp_path / "metadata")
    for statement in range(8):
        disk = CrashingDisk(statement)
        with pytest.raises(Crash):
            await EmbeddedStore(inline_host(disk), path, 0).load()
        for connection in disk.connections:
            connection.close()
    store = EmbeddedStore(inline_host(), path, 0)
    assert (await store.load()).version == 0
    await store.close()


async def test_an_error_inside_a_commit_leaves_the_store_usable(tmp_path: Path) -> None:
    store = EmbeddedStore(inline_host(), str(tmp_path / "metadata"), 0)
    before = await store.load()
    twice = (CHANGES[0], CHANGES[0])
    with pytest.raises(sqlite3.IntegrityError):
        await store.commit(twice, before.version)
    assert await store.load() == before
    assert await store.commit(CHANGES, before.version)
    await store.close()


async def test_stale_writer_is_told_so_and_changes_nothing(tmp_path: Path) -> None:
    path = str(tmp_path / "metadata")
    first, second = (EmbeddedStore(inline_host(), path, 0) for _ in range(2))
    image = await first.load()
    assert await second.load() == image
    assert await first.commit([ProducerIdsAllocated(1000)], image.version)
    assert not await second.commit([ProducerIdsAllocated(2000)], image.version)
    assert (await second.load()).next_producer_id == 1000
    await first.close()
    await second.close()


async def test_cluster_id_is_made_once(tmp_path: Path) -> None:
    store = EmbeddedStore(inline_host(), str(tmp_path / "metadata"), 0)
    cluster_id = (await store.load()).cluster_id
    assert len(cluster_id) == 22
    assert (await close_and_load(store)).cluster_id == cluster_id
    await store.close()


async def test_file_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    path = str(tmp_path / "metadata")
    store = EmbeddedStore(inline_host(), path, 0)
    await store.load()
    await store.close()
    database = sqlite3.connect(path)
    with database:
        database.execute("UPDATE meta SET value = '2' WHERE name = 'schema_version'")
    database.close()
    with pytest.raises(StoreError, match="was written by a newer Odradek"):
        await store.load()


async def test_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "metadata"
    path.write_bytes(b"this is a letter, not a database" * 100)
    with pytest.raises(StoreError, match="cannot be used as the metadata file"):
        await EmbeddedStore(inline_host(), str(path), 0).load()
