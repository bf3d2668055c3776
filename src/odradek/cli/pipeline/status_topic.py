"""Publishes the status of a pipeline to the topic `__odradek_pipelines` of its cluster, on a thread of its own.

A cluster that refuses it or does not answer never delays the pipeline: the thread keeps one status, the latest.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from odradek.admin.cluster import Cluster
from odradek.conventions.client_properties import UntranslatableSetting
from odradek.conventions.failures import Failure
from odradek.pipelines.operating import status_record
from odradek.pipelines.operating.client_settings import librdkafka_settings
from odradek.pipelines.operating.status import ENDED, PipelineStatus, State

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from confluent_kafka import KafkaError, Message, Producer

    from odradek.pipelines.definition.model import Pipeline

RETRY_S = 30.0
CLOSE_S = 3.0
FOLDER_SCHEME = "file:"  # a folder in place of a cluster
PRODUCER_SETTINGS = {
    "linger.ms": 0,
    "compression.type": "lz4",
    "message.timeout.ms": 10_000,
    "queue.buffering.max.messages": 10,
    "client.id": "odradek-pipeline-status",
}


class StatusTopic:
    """`offer` takes a status from one thread, and says on it, once, that the cluster takes none.

    `trouble` is the reason, until a status is delivered.
    """

    def __init__(
        self, cluster: Cluster, published: status_record.PublishedPipeline, say: Callable[[str], None]
    ) -> None:
        self._cluster = cluster
        self._published = published
        self._say = say
        self._has_said_trouble = False
        self._latest: PipelineStatus | None = None
        self._is_due = threading.Event()
        self._is_closed = threading.Event()
        self._producer: Producer | None = None
        self.trouble = ""
        self._thread = threading.Thread(target=self._run, name="pipeline-status", daemon=True)
        self._thread.start()

    def offer(self, status: PipelineStatus) -> None:
        """A change of the state is published at once, figures every two seconds."""
        has_new_state = self._latest is None or self._latest.state is not status.state
        self._latest = status
        if has_new_state:
            self._is_due.set()
        trouble = self.trouble
        if trouble and not self._has_said_trouble:
            self._say(f"the status is not published to topic {status_record.TOPIC}: {trouble}; retrying")
        self._has_said_trouble = bool(trouble)

    def close(self, *, has_failed: bool) -> None:
        """Publishes that the pipeline has ended; waits for the cluster for some seconds at most."""
        last = self._latest
        if last is not None and last.state not in ENDED:
            self._latest = replace(last, state=State.FAILED if has_failed else State.STOPPED, updated_s=time.time())
        self._is_closed.set()
        self._is_due.set()
        self._thread.join(CLOSE_S)

    def _run(self) -> None:
        while True:
            self._is_due.wait(status_record.PUBLISH_EVERY_S)
            self._is_due.clear()
            is_last = self._is_closed.is_set()
            try:
                self._publish(is_last=is_last)
            except Failure as failure:
                self.trouble = failure.message
            except Exception as error:
                self.trouble = f"{type(error).__name__}: {error}"
            if is_last:
                return
            if self.trouble:
                self._is_closed.wait(RETRY_S)

    def _publish(self, *, is_last: bool) -> None:
        status = self._latest
        if status is None:
            return
        if self._producer is None:
            if is_last:
                return  # the pipeline has ended before the cluster answered
            if not self._cluster.has_topic(status_record.TOPIC):
                self._cluster.create_topic(status_record.TOPIC, 1, configs=status_record.TOPIC_CONFIG)
            self._producer = self._cluster.producer(PRODUCER_SETTINGS)
        key, value = status_record.encode(replace(self._published, status=status, published_s=time.time()))
        with contextlib.suppress(BufferError):  # the cluster does not answer: the next status replaces this one
            self._producer.produce(status_record.TOPIC, value, key, on_delivery=self._take_delivery)
        self._producer.flush(CLOSE_S - 1.0 if is_last else 0.0)

    def _take_delivery(self, error: KafkaError | None, _message: Message) -> None:
        """Runs on the thread, in `flush`."""
        self.trouble = "" if error is None else error.str()


@contextlib.contextmanager
def status_topic(found: Pipeline, status: PipelineStatus, say: Callable[[str], None]) -> Iterator[StatusTopic | None]:
    """None for a pipeline that uses no topics, and for settings that librdkafka does not know."""
    cluster = cluster_of(found)
    if cluster is None:
        yield None
        return
    topic = StatusTopic(cluster, described(found, status), say)
    try:
        yield topic
    except BaseException:
        topic.close(has_failed=True)
        raise
    topic.close(has_failed=False)


def cluster_of(found: Pipeline) -> Cluster | None:
    from odradek.pipelines.definition.model import TopicOrigin, TopicTarget

    has_topics = any(isinstance(each.origin, TopicOrigin) for each in found.sources)
    has_topics = has_topics or any(isinstance(each.target, TopicTarget) for each in found.sinks)
    if not has_topics or found.bootstrap_servers.startswith(FOLDER_SCHEME):
        return None
    try:
        return Cluster(found.bootstrap_servers, librdkafka_settings(found.kafka))
    except UntranslatableSetting:
        return None


def described(found: Pipeline, status: PipelineStatus) -> status_record.PublishedPipeline:
    from odradek.pipelines.definition.model import TopicOrigin, TopicTarget
    from odradek.pipelines.planning.lineage import facts_of, lineage_of
    from odradek.pipelines.planning.rules import plan_again

    topics: dict[str, tuple[str, ...]] = {}
    for source in found.sources:
        if isinstance(source.origin, TopicOrigin):
            topics[f"source/{source.name}"] = source.origin.topics
    for sink in found.sinks:
        if isinstance(sink.target, TopicTarget):
            topics[f"sink/{sink.name}"] = (sink.target.topic,)
    nodes = [
        status_record.GraphNode(each.id, str(each.kind), each.name, each.detail, each.inputs, topics.get(each.id, ()))
        for each in lineage_of(plan_again(found))
    ]
    facts = tuple(map(found.without_secrets, facts_of(found)))
    return status_record.PublishedPipeline(socket.gethostname(), status, tuple(nodes), found.dead_letters, facts)
