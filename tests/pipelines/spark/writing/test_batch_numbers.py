"""The number of a batch includes the query id of its checkpoint, without which nothing is written."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from odradek.pipelines.definition.model import Pipeline, Sink, TopicTarget
from odradek.pipelines.definition.vocabulary import Delivery
from odradek.pipelines.operating.backoff import Retry
from odradek.pipelines.spark.sessions.failures import PipelineError, retry_of
from odradek.pipelines.spark.writing import delivery
from odradek.pipelines.spark.writing.delivery import QUERY_ID, BatchUnidentified, FlowWrites, number_of, take_over
from odradek.pipelines.spark.writing.warehouse import BatchNumber


def batch_with(properties: dict[str, str]) -> Any:
    return SimpleNamespace(sparkSession=SimpleNamespace(sparkContext=SimpleNamespace(getLocalProperty=properties.get)))


def test_a_batch_is_numbered_within_its_query() -> None:
    assert number_of(batch_with({QUERY_ID: "q"}), "rows", 3) == BatchNumber("q", 3)


def test_a_batch_without_a_query_id_is_refused() -> None:
    """After a reset it would be taken for a batch of the checkpoint before, and skipped."""
    with pytest.raises(BatchUnidentified, match=r"query id .* of batch 3 of flow rows: .* use PySpark") as refused:
        number_of(batch_with({}), "rows", 3)
    assert retry_of(refused.value) is Retry.NEVER


def test_a_broker_without_transactions_is_not_retried_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_slot: object) -> None:
        raise KafkaException(KafkaError(KafkaError._UNSUPPORTED_FEATURE))

    monkeypatch.setattr(delivery, "last_mark", refuse)
    sink = Sink("out", "rows", TopicTarget("out"))
    pipeline = Pipeline("p", sinks=(sink,), delivery=Delivery.EXACTLY_ONCE)
    with pytest.raises(PipelineError, match="use `delivery: at_least_once`, or a broker with transactions") as failed:
        take_over(pipeline, [FlowWrites("rows", is_repeatable=False)], None)
    assert retry_of(failed.value) is Retry.PERHAPS
