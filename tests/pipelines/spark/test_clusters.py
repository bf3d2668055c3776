"""Lookups at brokers before Spark starts: partitions, batch limits for transactions, readable errors."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import KafkaError
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # not in __all__

from odradek.pipelines.definition.model import Pipeline, Start, TopicOrigin
from odradek.pipelines.definition.places import Place
from odradek.pipelines.definition.vocabulary import Delivery, StartAt
from odradek.pipelines.spark.reading.sources import MOST_IN_TRANSACTION, record_limit, start_options
from odradek.pipelines.spark.sessions.failures import PipelineError
from odradek.pipelines.spark.writing import delivery
from odradek.pipelines.spark.writing.delivery import SplitsUnknown, count_splits
from odradek.pipelines.spark.writing.topics import BrokersUnavailable, Cluster, TopicMissing
from odradek.testing import broker

if TYPE_CHECKING:
    from odradek.testing import RunningBroker

NOWHERE = "127.0.0.1:1"


def test_partitions_are_counted_on_the_cluster_that_a_source_reads_from(odradek_session_broker: RunningBroker) -> None:
    home = Cluster(odradek_session_broker.bootstrap_servers, {})
    with broker() as there:
        admin = AdminClient({"bootstrap.servers": there.bootstrap_servers})
        admin.create_topics([NewTopic("only-there", 3, 1)])["only-there"].result(20)
        origin = TopicOrigin(("only-there",), bootstrap_servers=there.bootstrap_servers)
        start = Start(StartAt.OFFSETS, offsets={"only-there": {1: 5}})
        found = json.loads(start_options(origin, start, home.partitions_of, "starting")["startingOffsets"])
        assert found == {"only-there": {"0": -2, "1": 5, "2": -2}}
        assert home.at(origin) is home.at(replace(origin, topics=("another",)))
    with pytest.raises(TopicMissing, match="topic only-there does not exist"):
        home.partitions_of("only-there", TopicOrigin(("only-there",)))


def test_what_brokers_refuse_is_reported_in_a_sentence(odradek_session_broker: RunningBroker) -> None:
    servers = odradek_session_broker.bootstrap_servers
    with pytest.raises(PipelineError, match=f"{servers} failed to create topic no name: "):
        Cluster(servers, {}).create({"no name"})
    with pytest.raises(PipelineError, match=f"the settings under `kafka` for {servers} are invalid: .*loud"):
        Cluster(servers, {"security.protocol": "loud"})


def test_brokers_that_are_away_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("odradek.pipelines.spark.writing.topics.TIMEOUT_S", 0.1)
    with pytest.raises(BrokersUnavailable, match=f"no broker answers at {NOWHERE}"):
        Cluster(NOWHERE, {})


@pytest.mark.parametrize(
    ("kind", "chosen", "most"),
    [
        (Delivery.AT_LEAST_ONCE, None, None),
        (Delivery.AT_LEAST_ONCE, 7, 7),
        (Delivery.EXACTLY_ONCE, None, MOST_IN_TRANSACTION),
        (Delivery.EXACTLY_ONCE, 7_000_000, 7_000_000),
    ],
)
def test_a_batch_that_is_a_transaction_has_an_end(kind: Delivery, chosen: int | None, most: int | None) -> None:
    pipeline = Pipeline("p", place=Place("pipeline.yml", 1, 1), delivery=kind)
    assert record_limit(TopicOrigin(("t",), max_records_per_batch=chosen), pipeline) == most


def test_splits_are_counted_or_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong number would be cached, and records of a replayed batch would change their split."""
    answers = [(KafkaError(KafkaError.LEADER_NOT_AVAILABLE), {}), (None, {}), (None, {0: None, 1: None, 2: None})]

    def list_topics(topic: str, _timeout_s: float) -> SimpleNamespace:
        error, partitions = answers.pop(0)
        return SimpleNamespace(topics={topic: SimpleNamespace(error=error, partitions=partitions)})

    admin: Any = SimpleNamespace(list_topics=list_topics)
    monkeypatch.setattr(delivery, "AdminClient", lambda _settings: admin)
    count_splits.cache_clear()
    with pytest.raises(SplitsUnknown, match=r"topic marks of batch splits cannot be looked up at acted:1: .*[Ll]eader"):
        count_splits("acted:1", (), "marks")
    with pytest.raises(SplitsUnknown, match="it has no partitions"):
        count_splits("acted:1", (), "marks")
    assert count_splits("acted:1", (), "marks") == count_splits("acted:1", (), "marks") == 3
