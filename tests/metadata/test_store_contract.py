"""Every metadata store passes the contract."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace

import pytest

from odradek.host.workers import ThreadWorkers
from odradek.metadata import embedded_store
from odradek.metadata.embedded_store import EmbeddedStore
from odradek.metadata.store import MetadataStore
from tests.metadata.crashing_disk import CrashingDisk
from tests.metadata.inline_host import inline_host
from tests.metadata.key_value_store import Failure, KeyValueStore, Table
from tests.metadata.store_contract import StoreContract

HISTORY_COMMITS = 50


class EmbeddedStores:
    """Real files and real threads."""

    history_commits = 2 * HISTORY_COMMITS

    def __init__(self, resources: ExitStack) -> None:
        self._resources = resources
        self._path = f"{resources.enter_context(tempfile.TemporaryDirectory())}/metadata"
        self._workers = ThreadWorkers(4)
        resources.callback(self._workers.close)
        self._dying: dict[MetadataStore, CrashingDisk] = {}

    def open(self) -> EmbeddedStore:
        store = EmbeddedStore(replace(inline_host(), workers=self._workers), self._path)
        self._resources.callback(_close, store)
        return store

    def open_watching(self, store: MetadataStore) -> MetadataStore:
        return store  # one process, whose controller and cache share the store

    def open_dying(self, operations: int, *, after: bool) -> EmbeddedStore:
        disk = CrashingDisk(operations, after=after)
        store = EmbeddedStore(inline_host(disk), self._path)
        self._dying[store] = disk
        return store

    def bury(self, store: MetadataStore) -> None:
        self._dying.pop(store).close_databases()

    def fresh(self) -> EmbeddedStores:
        return EmbeddedStores(self._resources)


def _close(store: EmbeddedStore) -> None:
    if store._database is not None:
        store._database.close()


class KeyValueStores:
    history_commits = 2 * HISTORY_COMMITS

    def __init__(self) -> None:
        self._table = Table()

    def open(self) -> KeyValueStore:
        return KeyValueStore(self._table, HISTORY_COMMITS)

    def open_watching(self, store: MetadataStore) -> KeyValueStore:
        return self.open()

    def open_dying(self, operations: int, *, after: bool) -> KeyValueStore:
        store = self.open()
        store.connection.failing_operation = operations
        store.connection.failure = Failure.BEFORE if after else Failure.NEVER
        store.connection.is_dying = True
        return store

    def bury(self, store: MetadataStore) -> None: ...

    def fresh(self) -> KeyValueStores:
        return KeyValueStores()


class TestEmbeddedStore(StoreContract):
    @pytest.fixture
    def factory(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbeddedStores]:
        monkeypatch.setattr(embedded_store, "SNAPSHOT_COMMITS", HISTORY_COMMITS)
        with ExitStack() as resources:
            yield EmbeddedStores(resources)


class TestKeyValueStore(StoreContract):
    @pytest.fixture
    def factory(self) -> KeyValueStores:
        return KeyValueStores()
