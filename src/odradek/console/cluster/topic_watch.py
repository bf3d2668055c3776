"""A thread that reads topics into a model while pages show it: what the watches of pipelines and of rigs share."""

from __future__ import annotations

import contextlib
import threading
import time
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

from confluent_kafka import KafkaException

from odradek.cli.framework.failure import Failure
from odradek.cli.records.record_reader import END_OF_PARTITION, NO_GROUP_RIGHTS
from odradek.console.cluster.permissions import needs

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from confluent_kafka import Consumer, Message, TopicPartition

    from odradek.cli.client.cluster import Cluster

CONSUMER_SETTINGS = {
    "enable.partition.eof": True,
    "queued.max.messages.kbytes": 4 * 1024,
    "client.id": "odradek-console",
}

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
        self._unanswered: set[tuple[str | None, int | None]] = set()  # partitions that no fetch has read
        self._is_caught_up = threading.Event()
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
            self._unanswered.clear()
            try:
                self._follow()
                return
            except Failure as failure:
                self.trouble = failure.message
            except KafkaException as error:
                self.trouble = self._cluster.failure(error.args[0]).message
            except Exception as error:
                self.trouble = f"{type(error).__name__}: {error}"
            self._is_caught_up.set()
            self._is_stopped.wait(self.retry_s)

    def _assign(self, consumer: Consumer, positions: Sequence[TopicPartition]) -> None:
        consumer.incremental_assign(list(positions))
        self._unanswered.update((each.topic, each.partition) for each in positions)

    def _consume(self, consumer: Consumer, most: int, timeout_s: float) -> list[Message]:
        """The records that have arrived. NotAllowed without Read; Failure for other errors that are not retried."""
        records: list[Message] = []
        for message in consumer.consume(most, timeout_s):
            error = message.error()
            if error is None:
                records.append(message)
            elif error.name() == END_OF_PARTITION:
                self._is_caught_up.set()
            elif error.name() == NO_GROUP_RIGHTS or (error.retriable() and not error.fatal()):
                continue
            else:
                with needs("Read", f"topic {message.topic()}"):
                    raise self._cluster.failure(error, f"topic {message.topic()}")
            self._unanswered.discard((message.topic(), message.partition()))
        if not self._unanswered:
            self.trouble = ""
        return records
