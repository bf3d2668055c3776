"""Looks up the partitions of topics, and their offsets at the start, at the end or at a time."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, TypeVar

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]  # confluent_kafka.admin does not list it in __all__

from odradek.pipelines.spark.python_source.offsets import Partition
from odradek.pipelines.spark.python_source.options import EARLIEST, LATEST
from odradek.pipelines.spark.sessions.failures import PipelineError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from odradek.pipelines.spark.python_source.options import Edge, TopicOptions

ANSWER_S = 10.0
PATIENCE_S = 60.0  # the default of Kafka's Java client
PAUSE_S = 0.2
REFUSALS = frozenset({
    KafkaError._AUTHENTICATION,  # noqa: SLF001 - its name in the API
    KafkaError.SASL_AUTHENTICATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
})  # fmt: skip
# Transient errors of a topic that exists.
UNSETTLED = frozenset({
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError.NETWORK_EXCEPTION,
    KafkaError.KAFKA_STORAGE_ERROR,
    KafkaError._TIMED_OUT,  # noqa: SLF001
    KafkaError._TRANSPORT,  # noqa: SLF001
})  # fmt: skip
READ_UNCOMMITTED = "read_uncommitted"  # Kafka's default, which differs from librdkafka's

Answer = TypeVar("Answer")


class TopicsUnavailable(PipelineError):
    """The topics cannot be looked up."""


class Lookup:
    """Looks up topics of one cluster."""

    def __init__(self, options: TopicOptions) -> None:
        self._options = options
        settings = dict(options.client)
        self._servers = settings.get("bootstrap.servers", "")
        is_uncommitted = settings.get("isolation.level", READ_UNCOMMITTED) == READ_UNCOMMITTED
        self._isolation = IsolationLevel.READ_UNCOMMITTED if is_uncommitted else IsolationLevel.READ_COMMITTED
        self._admin = AdminClient({**settings, "log_level": "0"})

    def partitions(self) -> list[Partition]:
        """The current partitions of all wanted topics. Retries during a leader election."""

        def ask() -> list[Partition]:
            every = self._admin.list_topics(timeout=ANSWER_S).topics
            wanted = {name: topic for name, topic in every.items() if self._options.wants(name)}
            for topic in wanted.values():
                if topic.error is not None and topic.error.code() in UNSETTLED:
                    raise KafkaException(topic.error)
            found = (
                Partition(name, index)
                for name, topic in wanted.items()
                if topic.error is None
                for index in topic.partitions
            )
            return sorted(found)

        return self._with_retries(ask)

    def at(self, edge: Edge, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """The offsets of an edge; a time after the last record means the end."""
        chosen = list(partitions)
        if edge.time_ms is not None:
            found = self.offsets(dict.fromkeys(chosen, edge.time_ms), is_time=True)
            later = [partition for partition, offset in found.items() if offset < 0]
            return found | self.offsets(dict.fromkeys(later, LATEST))
        wanted = {partition: edge.offsets.get(partition, edge.other) for partition in chosen}
        return wanted | self.offsets({partition: offset for partition, offset in wanted.items() if offset < 0})

    def earliest(self, partition: Partition) -> int:
        return self.offsets({partition: EARLIEST})[partition]

    def latest(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        return self.offsets(dict.fromkeys(partitions, LATEST))

    def offsets(self, wanted: Mapping[Partition, int], *, is_time: bool = False) -> dict[Partition, int]:
        if not wanted:
            return {}
        asked = {TopicPartition(*partition): spec(what, is_time) for partition, what in wanted.items()}

        def ask() -> dict[Partition, int]:
            answers = self._admin.list_offsets(asked, isolation_level=self._isolation, request_timeout=ANSWER_S)
            return {Partition(each.topic, each.partition): f.result().offset for each, f in answers.items()}

        return self._with_retries(ask)

    def _with_retries(self, ask: Callable[[], Answer]) -> Answer:
        """Retries while a broker restarts or a leader changes."""
        give_up_at = time.monotonic() + PATIENCE_S
        while True:
            try:
                return ask()
            except KafkaException as error:
                reason = error.args[0]
                if reason.code() in REFUSALS or time.monotonic() > give_up_at:
                    raise TopicsUnavailable(f"topics cannot be looked up at {self._servers}: {reason.str()}") from None
            time.sleep(PAUSE_S)  # a poll's pause


def spec(what: int, is_time: bool) -> Any:
    specs: Any = OffsetSpec
    if is_time:
        return specs.for_timestamp(what)
    return specs.earliest() if what == EARLIEST else specs.latest()
