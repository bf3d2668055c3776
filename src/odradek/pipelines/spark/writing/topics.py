"""Prepares topics with a Kafka client: source topics must exist before Spark starts.

Sink topics are created after Spark has analysed the pipeline: a definition that it refuses leaves no topics behind.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # confluent_kafka.admin does not list it in __all__

from odradek.pipelines.definition.model import TopicOrigin, TopicTarget
from odradek.pipelines.definition.vocabulary import Delivery
from odradek.pipelines.operating.backoff import Retry
from odradek.pipelines.operating.client_settings import librdkafka_settings
from odradek.pipelines.spark.sessions.failures import PipelineError
from odradek.pipelines.spark.writing.delivery import SPLITS, marks_topic
from odradek.pipelines.spark.writing.kafka_records import producers_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from collections.abc import Set as AbstractSet

    from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]  # confluent_kafka.admin does not list it in __all__

    from odradek.pipelines.definition.model import Pipeline

TIMEOUT_S = 5.0
MAKING_TIMEOUT_S = 30.0  # creating many partitions may take long
TRANSIENT = frozenset({
    KafkaError._TIMED_OUT,  # noqa: SLF001 - its name in the API
    KafkaError._TRANSPORT,  # noqa: SLF001
    KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError.NOT_CONTROLLER,
})  # fmt: skip
INTERNAL = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
TOPIC_CONFIG = {"max.message.bytes": str(8 * 1024 * 1024)}


class TopicMissing(PipelineError):
    """The topic of a source does not exist."""

    retry = Retry.LIKELY


class BrokersUnavailable(PipelineError):
    """No broker is reachable."""

    retry = Retry.LIKELY


class Cluster:
    """The topics of one cluster and their partitions, as of the last lookup.

    `at` returns the cluster of a source that has its own brokers.
    """

    def __init__(self, bootstrap_servers: str, settings: Mapping[str, str]) -> None:
        self.bootstrap_servers = bootstrap_servers
        self._settings = dict(settings)
        self._others: dict[str, Cluster] = {}
        self._awaited: Callable[[], None] | None = None  # creates the topics of sinks
        client: dict[str, str | int | float | bool] = {
            **librdkafka_settings(settings),
            "bootstrap.servers": bootstrap_servers,
            "log_level": 0,
        }
        try:
            self._admin = AdminClient(client)
        except KafkaException as error:
            reason = error.args[0].str()
            raise PipelineError(f"the settings under `kafka` for {bootstrap_servers} are invalid: {reason}") from None
        self.partitions = self._look()

    def _look(self) -> dict[str, int]:
        try:
            found = self._admin.list_topics(timeout=TIMEOUT_S)
        except KafkaException as error:
            raise BrokersUnavailable(f"no broker answers at {self.bootstrap_servers}: {error.args[0].str()}") from None
        self.id: str | None = found.cluster_id
        return {name: len(topic.partitions) for name, topic in found.topics.items() if topic.error is None}

    def at(self, origin: TopicOrigin) -> Cluster:
        """The cluster that a source reads from."""
        servers = origin.bootstrap_servers
        if servers is None or servers == self.bootstrap_servers:
            return self
        if servers not in self._others:
            self._others[servers] = Cluster(servers, {**self._settings, **origin.kafka})
        return self._others[servers]

    def topics_of(self, origin: TopicOrigin) -> tuple[str, ...]:
        """The names of the topics that a source reads."""
        if origin.pattern is None:
            return origin.topics
        return tuple(name for name in self.at(origin).partitions if reads_topic(origin, name))

    def partitions_of(self, topic: str, origin: TopicOrigin | None = None) -> int:
        if origin is not None and self.at(origin) is not self:
            return self.at(origin).partitions_of(topic)
        if topic not in self.partitions:
            raise TopicMissing(f"topic {topic} does not exist on {self.bootstrap_servers}")
        return self.partitions[topic]

    def offsets(self, topics: AbstractSet[str], spec: OffsetSpec) -> dict[str, dict[int, int]]:
        """The offsets of partitions by topic, such as their ends; raises KafkaException or TimeoutError."""
        if not topics <= self.partitions.keys():
            self.partitions = self._look()
        places = [TopicPartition(topic, each) for topic in topics for each in range(self.partitions.get(topic, 0))]
        found: dict[str, dict[int, int]] = {}
        asked = self._admin.list_offsets(dict.fromkeys(places, spec), request_timeout=TIMEOUT_S) if places else {}
        for place, future in asked.items():
            found.setdefault(place.topic, {})[place.partition] = future.result(TIMEOUT_S).offset
        return found

    def await_analysis(self, create: Callable[[], None]) -> None:
        """Sets the function that creates the topics of sinks."""
        self._awaited = create

    def create_awaited(self) -> None:
        """Creates the topics of sinks; engines call it after Spark has analysed the pipeline."""
        create, self._awaited = self._awaited, None
        if create is not None:
            create()

    def create(self, topics: set[str], partitions: int = -1) -> None:
        """Creates a topic unless it exists, by default with the broker's number of partitions.

        `max.message.bytes` is raised: an output record has headers in addition to the value of its input record.
        """
        missing = sorted(topics - set(self.partitions))
        if not missing:
            return
        made = [NewTopic(name, partitions, -1, config=TOPIC_CONFIG) for name in missing]
        for name, future in self._admin.create_topics(made).items():
            try:
                future.result(MAKING_TIMEOUT_S)
            except TimeoutError:
                message = f"{self.bootstrap_servers} failed to create topic {name} in {MAKING_TIMEOUT_S:.0f} s"
                raise BrokersUnavailable(message) from None
            except KafkaException as error:
                reason = error.args[0]
                if reason.code() == KafkaError.TOPIC_ALREADY_EXISTS:
                    continue
                kind = BrokersUnavailable if reason.code() in TRANSIENT else PipelineError
                raise kind(f"{self.bootstrap_servers} failed to create topic {name}: {reason.str()}") from None
        self.partitions = self._look()


def reads_topic(origin: TopicOrigin, topic: str) -> bool:
    """Whether a source reads a topic; a pattern matches whole names, and no internal topics."""
    if origin.pattern is None:
        return topic in origin.topics
    return topic not in INTERNAL and re.fullmatch(origin.pattern, topic) is not None


def prepare_topics(pipeline: Pipeline) -> Cluster:
    """Checks that the topics of sources exist, and creates the topics that the pipeline writes to."""
    cluster = check_topics(pipeline)
    cluster.create_awaited()
    return cluster


def check_topics(pipeline: Pipeline) -> Cluster:
    """Checks that the topics of sources exist; `create_awaited` creates those that the pipeline writes to."""
    cluster = Cluster(pipeline.bootstrap_servers, pipeline.kafka)
    for source in pipeline.sources:
        origin = source.origin
        if not isinstance(origin, TopicOrigin) or origin.bootstrap_servers not in {None, pipeline.bootstrap_servers}:
            continue
        for topic in origin.topics:
            if topic not in cluster.partitions:
                raise TopicMissing(
                    f"{source.place}: topic {topic} of source '{source.name}' does not exist on "
                    f"{cluster.bootstrap_servers}; create it with: odradek topic create {topic}"
                )
        if not cluster.topics_of(origin):
            raise TopicMissing(f"{source.place}: no topic on {cluster.bootstrap_servers} matches {origin.pattern}")
    cluster.await_analysis(lambda: create_topics(pipeline, cluster))
    return cluster


def create_topics(pipeline: Pipeline, cluster: Cluster) -> None:
    """Creates the topics that the pipeline writes to."""
    if pipeline.delivery is Delivery.EXACTLY_ONCE:
        for producer in producers_of(pipeline):
            Cluster(producer.servers, dict(producer.settings)).create({marks_topic(pipeline)}, SPLITS)
    written = {
        sink.target.topic
        for sink in pipeline.sinks
        if isinstance(sink.target, TopicTarget) and sink.target.bootstrap_servers in {None, pipeline.bootstrap_servers}
    }
    if pipeline.dead_letters is not None:
        written.add(pipeline.dead_letters)
    cluster.create(written)
