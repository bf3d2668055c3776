"""The status topic: what a pipeline needs to publish to it, and what is reported when the cluster refuses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from confluent_kafka import Consumer, TopicPartition

from odradek.admin.cluster import Cluster
from odradek.cli.pipeline import status_topic
from odradek.cli.pipeline.status_topic import StatusTopic
from odradek.conventions.failures import Failure
from odradek.pipelines.operating import status_record
from odradek.pipelines.operating.status import PipelineStatus, State
from odradek.pipelines.operating.status_record import PublishedPipeline, parse
from tests.commands import run_odradek
from tests.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

PATIENCE_S = 60.0
STATUS = PipelineStatus("p", State.RUNNING, updated_s=1.0)


def published_states(bootstrap_server: str, topic: str) -> list[str]:
    consumer = Consumer({"bootstrap.servers": bootstrap_server, "group.id": "test", "enable.partition.eof": True})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[str] = []
    while True:
        message = consumer.poll(PATIENCE_S)
        assert message is not None
        if message.error() is not None:
            consumer.close()
            return found
        published = parse(message.value() or b"")
        assert published is not None
        found.append(str(published.status.state))


def test_a_topic_that_exists_is_not_created(
    bootstrap_server: str, new_name: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Create is needed for the first pipeline of a cluster only."""
    name = new_name()
    monkeypatch.setattr(status_record, "TOPIC", name)
    cluster = Cluster(bootstrap_server, {})
    cluster.create_topic(name, 1)

    def refuse(*_arguments: object, **_rest: object) -> bool:
        raise Failure("needs Create")

    monkeypatch.setattr(Cluster, "create_topic", refuse)
    topic = StatusTopic(cluster, PublishedPipeline("host", STATUS), print)
    topic.offer(STATUS)
    eventually(lambda: "running" in published_states(bootstrap_server, name))
    topic.close(has_failed=False)
    assert topic.trouble == ""
    assert published_states(bootstrap_server, name)[-1] == "stopped"


def test_a_refused_status_is_reported_once(
    bootstrap_server: str, new_name: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker refuses records of this size; it refuses a user without Write in the same way."""
    name = new_name()
    monkeypatch.setattr(status_record, "TOPIC", name)
    monkeypatch.setattr(status_topic, "RETRY_S", 0.1)
    monkeypatch.setattr(status_record, "PUBLISH_EVERY_S", 0.1)
    cluster = Cluster(bootstrap_server, {})
    cluster.create_topic(name, 1, configs={"max.message.bytes": "10"})
    lines: list[str] = []
    topic = StatusTopic(cluster, PublishedPipeline("host", STATUS), lines.append)
    for _ in range(5):
        topic.offer(STATUS)
        eventually(lambda: topic.trouble)
    topic.offer(STATUS)
    (line,) = lines
    assert line.startswith(f"the status is not published to topic {name}: ")
    assert "too large" in line
    altered = run_odradek("topic", "alter", name, "--config", "max.message.bytes=100000", "-b", bootstrap_server)
    assert altered.code == 0
    eventually(lambda: not topic.trouble)
    topic.close(has_failed=False)
    assert lines == [line]
