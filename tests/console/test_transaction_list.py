"""The list of transactions while a broker does not answer."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from odradek.admin import transactions
from odradek.admin.broker_requests import BrokerRequests
from odradek.admin.cluster import Cluster
from odradek.console.cluster.transactions import list_transactions
from odradek.conventions.failures import Failure


def refuse_of(*silent: int) -> Any:
    def answer(_requests: object, brokers: list[Any]) -> list[str]:
        (broker,) = brokers
        if broker.broker_id in silent:
            raise Failure(f"no response from kafka-{broker.broker_id}:9092")
        return [f"of broker {broker.broker_id}"]

    return answer


def test_a_broker_that_does_not_answer_is_named_and_hides_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    brokers = {each: SimpleNamespace(broker_id=each) for each in (1, 2, 3)}
    cluster: Any = SimpleNamespace(requests=None)
    monkeypatch.setattr(transactions, "live_brokers", lambda _requests: brokers)
    monkeypatch.setattr(transactions, "list_transactions", refuse_of(2))
    found, failures = list_transactions(cluster)
    assert [str(each) for each in found] == ["of broker 1", "of broker 3"]
    assert failures == ["no response from kafka-2:9092"]
    monkeypatch.setattr(transactions, "list_transactions", refuse_of(1, 2, 3))
    with pytest.raises(Failure, match="kafka-1"):
        list_transactions(cluster)


def test_any_broker_that_answers_finds_a_coordinator() -> None:
    def answer(address: Any, *_arguments: Any) -> Any:
        if address.host == "kafka-1":
            raise Failure("no response from kafka-1:9092")
        found = SimpleNamespace(key="orders", error_code=0, node_id=3, host="kafka-3", port=9092)
        return SimpleNamespace(coordinators=[found])

    call: Any = answer
    coordinators, errors = BrokerRequests(Cluster("kafka-1,kafka-2", {}), 1.0, call).find_coordinators(["orders"])
    assert [(each.host, names) for each, names in coordinators.items()] == [("kafka-3", ["orders"])]
    assert not errors
    with pytest.raises(Failure, match="kafka-1"):
        BrokerRequests(Cluster("kafka-1", {}), 1.0, call).find_coordinators(["orders"])
