"""The pipeline and the clusters that a checkpoint belongs to, with real brokers, without Spark."""

from __future__ import annotations

import json
import textwrap
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # not in __all__

from odradek.pipelines.definition.model import TopicOrigin
from odradek.pipelines.operating.checkpoints import Checkpoints
from odradek.pipelines.operating.fingerprints import fingerprints
from odradek.pipelines.planning.loading import load_yaml
from odradek.pipelines.planning.rules import plan_again
from odradek.pipelines.spark.engines.progress import topic_ends
from odradek.pipelines.spark.resuming import CheckpointRefused, accept, clusters_of
from odradek.pipelines.spark.writing.topics import Cluster
from odradek.testing import RunningBroker

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]  # not in __all__

    from odradek.pipelines.definition.model import Pipeline

DEFINITION = """
    pipeline: {name}
    bootstrap_servers: {here}
    checkpoints: checkpoints
    kafka: {{max.block.ms: "1000"}}
    sources:
      near: {{topic: near, schema: "id INT"}}
      far: {{topic: far, schema: "id INT", bootstrap_servers: "{there}", kafka: {{max.poll.records: "7"}}}}
    sinks: {{a: {{from: near, topic: a}}, b: {{from: far, topic: b}}}}
"""


@pytest.fixture(scope="module")
def brokers() -> Iterator[tuple[RunningBroker, RunningBroker]]:
    with RunningBroker({"num.partitions": 1}) as here, RunningBroker({"num.partitions": 1}) as there:
        yield here, there


@pytest.fixture
def servers(brokers: tuple[RunningBroker, RunningBroker]) -> tuple[str, str]:
    here, there = brokers
    return here.bootstrap_servers, there.bootstrap_servers


def quiet(_line: str) -> None:
    """Ignores messages."""


def define(folder: Path, servers: tuple[str, str], name: str = "p") -> Pipeline:
    file = folder / "p.yml"
    file.write_text(textwrap.dedent(DEFINITION).format(name=name, here=servers[0], there=servers[1]))
    return load_yaml(str(file), {}).require()


def test_a_source_with_brokers_of_its_own_is_of_their_cluster(tmp_path: Path, servers: tuple[str, str]) -> None:
    cluster, other = Cluster(servers[0], {}), Cluster(servers[1], {})
    assert cluster.id != other.id
    pipeline = define(tmp_path, servers)
    found = fingerprints(plan_again(pipeline), {}, clusters_of(pipeline, cluster))
    assert found.flows["near"] == {"source near": f"topics near of cluster {cluster.id}"}
    assert found.flows["far"] == {"source far": f"topics far of cluster {other.id}"}


def test_the_checkpoint_of_another_pipeline_is_refused(tmp_path: Path, servers: tuple[str, str]) -> None:
    cluster = Cluster(servers[0], {})
    first, second = define(tmp_path, servers), define(tmp_path, servers, "q")
    kept = Checkpoints(first)
    accept(plan_again(first), kept, cluster, quiet)
    accept(plan_again(second), kept, cluster, quiet)  # no flow has started, so another pipeline may use the folder
    offsets = kept.flow_folder("near") / "offsets"
    offsets.mkdir(parents=True)
    (offsets / "0").write_text("v1\n{}\n")
    with pytest.raises(CheckpointRefused, match="belongs to pipeline q, not to p: use a separate folder for each"):
        accept(plan_again(first), kept, cluster, quiet)
    accept(plan_again(second), kept, cluster, quiet)


def test_the_ends_of_topics_are_asked_where_they_are(tmp_path: Path, servers: tuple[str, str]) -> None:
    for address, topic, number in zip(servers, ("near", "far"), (3, 5), strict=True):
        admin = AdminClient({"bootstrap.servers": address})
        admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(30)
        producer = Producer({"bootstrap.servers": address})
        for _ in range(number):
            producer.produce(topic, b"{}")
        assert producer.flush(30) == 0
    origins = [each.origin for each in define(tmp_path, servers).sources if isinstance(each.origin, TopicOrigin)]
    cluster = Cluster(servers[0], {})
    assert topic_ends(cluster, origins, set()) == {}
    assert topic_ends(cluster, origins, {"near", "far"}) == {"near": {"0": 3}, "far": {"0": 5}}


def test_a_topic_that_is_created_later_has_an_end(servers: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(servers[0], {})
    admin = AdminClient({"bootstrap.servers": servers[0]})
    for topic in ("later-a", "later-b"):
        admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(30)
    asked: list[set[str]] = []
    offsets = cluster.offsets

    def ask(topics: set[str], spec: OffsetSpec) -> dict[str, dict[int, int]]:
        asked.append({*topics})
        return offsets(topics, spec)

    monkeypatch.setattr(cluster, "offsets", ask)
    origins = [TopicOrigin(pattern="later-.*"), TopicOrigin(("later-a",))]
    assert topic_ends(cluster, origins, {"later-a", "later-b", "other"}) == {"later-a": {"0": 0}, "later-b": {"0": 0}}
    assert asked == [{"later-a", "later-b"}]  # one request for all sources of a cluster


def test_brokers_that_do_not_answer_are_left_out(servers: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("odradek.pipelines.spark.writing.topics.TIMEOUT_S", 0.2)
    origins = [TopicOrigin(("far",), bootstrap_servers="127.0.0.1:1")]
    assert topic_ends(Cluster(servers[0], {}), origins, {"far"}) == {}


def test_a_checkpoint_of_another_version_is_refused(tmp_path: Path, servers: tuple[str, str]) -> None:
    cluster, pipeline = Cluster(servers[0], {}), define(tmp_path, servers)
    kept = Checkpoints(pipeline)
    accept(plan_again(pipeline), kept, cluster, quiet)
    stored = json.loads(kept.files.read("definition.json") or "")
    kept.files.replace("definition.json", json.dumps({**stored, "version": 2}))
    accept(plan_again(pipeline), kept, cluster, quiet)  # no flow has begun
    kept.files.replace("definition.json", json.dumps({**stored, "version": 2}))
    offsets = kept.flow_folder("near") / "offsets"
    offsets.mkdir(parents=True)
    (offsets / "0").write_text("v1\n{}\n")
    with pytest.raises(CheckpointRefused, match=r"is of another version of Odradek.*odradek pipeline reset"):
        accept(plan_again(pipeline), kept, cluster, quiet)
