"""Lookups while the brokers' metadata changes; the brokers' responses are faked."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError

from odradek.pipelines.spark.python_source import lookup as lookups
from odradek.pipelines.spark.python_source.lookup import Lookup, TopicsUnavailable
from odradek.pipelines.spark.python_source.offsets import Partition
from odradek.pipelines.spark.python_source.options import TopicOptions

Topics = dict[str, tuple[int | None, int]]  # the error of each topic, and its number of partitions


class Answers:
    """Metadata responses in order; the last one is repeated."""

    def __init__(self, *answers: Topics) -> None:
        self._answers = list(answers)

    def list_topics(self, timeout: float) -> SimpleNamespace:
        assert timeout > 0
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        return SimpleNamespace(
            topics={
                name: SimpleNamespace(
                    error=None if code is None else KafkaError(code), partitions=dict.fromkeys(range(n))
                )
                for name, (code, n) in answer.items()
            }
        )


def asked(monkeypatch: pytest.MonkeyPatch, *answers: Topics) -> Lookup:
    admin: Any = Answers(*answers)
    monkeypatch.setattr(lookups, "AdminClient", lambda _settings: admin)
    return Lookup(TopicOptions.of({"kafka.bootstrap.servers": "acted:1", "subscribe": "a,b"}))


def test_a_topic_whose_leader_is_being_chosen_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    unsettled: Topics = {"a": (None, 1), "b": (KafkaError.LEADER_NOT_AVAILABLE, 0)}
    lookup = asked(monkeypatch, unsettled, {"a": (None, 1), "b": (None, 2)})
    assert lookup.partitions() == [Partition("a", 0), Partition("b", 0), Partition("b", 1)]


def test_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookups, "PATIENCE_S", 0.01)
    with pytest.raises(TopicsUnavailable, match="topics cannot be looked up at acted:1"):
        asked(monkeypatch, {"a": (KafkaError.LEADER_NOT_AVAILABLE, 0)}).partitions()


def test_others_topics_are_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    lookup = asked(monkeypatch, {"a": (None, 1), "other": (KafkaError.LEADER_NOT_AVAILABLE, 0)})
    assert lookup.partitions() == [Partition("a", 0)]


def test_a_topic_that_is_gone_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    lookup = asked(monkeypatch, {"a": (None, 1), "b": (KafkaError.UNKNOWN_TOPIC_OR_PART, 0)})
    assert lookup.partitions() == [Partition("a", 0)]
