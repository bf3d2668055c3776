"""Each broker is asked for its own, while one of them does not answer."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from odradek.admin.broker_requests import BrokerRequests, KnownBroker, ask_each
from odradek.admin.cluster import Cluster
from odradek.admin.errors import NotAuthorized, RefusedConnection
from odradek.conventions.failures import Failure


def broker_of(broker_id: int) -> KnownBroker:
    return KnownBroker(broker_id, f"kafka-{broker_id}", 9092, None, is_fenced=False)


def test_a_broker_that_does_not_answer_is_named_and_hides_no_others() -> None:
    silent = {2}

    def ask(broker: KnownBroker) -> str:
        if broker.broker_id in silent:
            raise Failure(f"no response from {broker.host}:9092")
        return f"of broker {broker.broker_id}"

    brokers = [broker_of(each) for each in (1, 2, 3)]
    missing: dict[int, str] = {}
    assert ask_each(brokers, ask, missing) == ["of broker 1", "of broker 3"]
    assert missing == {2: "no response from kafka-2:9092"}
    with pytest.raises(Failure, match="kafka-2"):
        ask_each(brokers, ask)
    silent |= {1, 3}
    with pytest.raises(Failure, match="no response"):
        ask_each(brokers, ask, missing)


@pytest.mark.parametrize("kind", [NotAuthorized, RefusedConnection])
def test_a_refusal_that_others_would_repeat_is_a_failure(kind: type[Failure]) -> None:
    def refuse(_broker: KnownBroker) -> None:
        raise kind("refused")

    with pytest.raises(kind):
        ask_each([broker_of(1)], refuse, {})


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
