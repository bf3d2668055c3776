"""A thread that reads topics into a model while pages show it: what the watches of pipelines and of rigs share."""

from __future__ import annotations

import contextlib
import threading
import time
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

from odradek.admin.records.record_fetcher import FetchSettings, RecordFetcher
from odradek.console.cluster.permissions import needs
from odradek.console.cluster.records import Unreadable, joined
from odradek.conventions.failures import Failure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.admin.cluster import Cluster
    from odradek.admin.records.fetched_batches import FetchedRecord
    from odradek.admin.records.record_fetcher import Key

LARGEST_BATCH_BYTES = 8 * 1024 * 1024  # when it is decompressed

M = TypeVar("M")


class TopicWatch(ABC, Generic[M]):
    """Starts with the first reader of the model, and ends some time after the last one.

    The lock covers changes of the model only, and no decoding or parsing: pages take it on the event loop.
    """

    name: ClassVar[str]
    unwatched_s: ClassVar[float]
    retry_s: ClassVar[float]

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._lock = threading.Lock()
        self._model: M | None = None
        self._began_at = self._wanted_until = float("-inf")
        self._unreadable = Unreadable()
        self._is_caught_up = threading.Event()
        self._has_reached_end = False
        self._is_stopped = threading.Event()
        self.trouble = ""

    @abstractmethod
    def _new_model(self) -> M: ...

    @abstractmethod
    def _follow(self) -> None:
        """Reads until the watch is unwanted. An exception is shown as trouble, and followed by another call."""

    @contextlib.contextmanager
    def reading(self) -> Iterator[M]:
        """The model, which does not change within the block."""
        with self._lock:
            self._wanted_until = time.monotonic() + self.unwatched_s
            if self._model is None:
                self._model = self._new_model()
                if not self._is_stopped.is_set():
                    self._is_caught_up.clear()
                    self._began_at = time.monotonic()
                    threading.Thread(target=self._run, name=self.name, daemon=True).start()
            yield self._model

    def wait_until_read(self, timeout_s: float) -> None:
        """Waits for the end of a topic, or the reason why it is not read, in the first seconds of the watch; blocks."""
        with self.reading():
            remaining_s = self._began_at + timeout_s - time.monotonic()
        if remaining_s > 0:
            self._is_caught_up.wait(remaining_s)

    def stop(self) -> None:
        self._is_stopped.set()

    def _is_unwanted(self) -> bool:
        """Drops the model in one step with the question: the next reader starts another thread."""
        with self._lock:
            if self._is_stopped.is_set() or time.monotonic() > self._wanted_until:
                self._model = None
                return True
        return False

    def _run(self) -> None:
        while not self._is_unwanted():
            try:
                self._follow()
                return
            except Failure as failure:
                self.trouble = failure.message
            except Exception as error:
                self.trouble = f"{type(error).__name__}: {error}"
            self._is_caught_up.set()
            self._is_stopped.wait(self.retry_s)

    @contextlib.contextmanager
    def _fetching(self, settings: FetchSettings) -> Iterator[RecordFetcher]:
        self._unreadable = Unreadable()
        self._has_reached_end = False
        fetcher = RecordFetcher(self._cluster, settings, self._unreadable.add, _raise)
        try:
            yield fetcher
        finally:
            fetcher.close()

    def _fetch(self, fetcher: RecordFetcher, timeout_s: float) -> list[FetchedRecord]:
        """Records, if some have arrived. NotAllowed without Read; Failure for other errors that are not retried. What
        ended the last reading stays as trouble until something is read."""
        if self._has_reached_end:  # the model has what was returned by the last call
            self._is_caught_up.set()
        records = fetcher.poll(timeout_s)
        is_at_end = self._has_reached_end = any(fetcher.is_at_end(key) for key in fetcher.keys)
        if is_at_end and not records:
            self._is_caught_up.set()
        trouble = joined(fetcher.trouble, self._unreadable.notice)
        if trouble or records or is_at_end:
            self.trouble = trouble
        return records


def _raise(key: Key, failure: Failure) -> None:
    with needs("Read", f"topic {key[0]}"):
        raise failure
