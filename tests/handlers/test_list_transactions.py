"""ListTransactions: what is listed, and what a pattern of the client is matched with."""

from collections.abc import Iterator, Sequence

import pytest

from odradek.coordinator import pattern_matching
from odradek.coordinator.groups.consumer.topic_patterns import matching_names
from odradek.coordinator.pattern_matching import PatternMatching
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from odradek.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from odradek.security.authorizer import ResourceType
from tests.handlers.brokers import SimulatedBroker
from tests.security.authorizers import Forbids

TRANSACTION = 1
IDS = ("a-1", "a-2", "b-1")


@pytest.fixture
def broker() -> Iterator[SimulatedBroker]:
    broker = SimulatedBroker(transaction_state_log_num_partitions="2")
    find = FindCoordinatorRequest(key_type=TRANSACTION, coordinator_keys=list(IDS))
    broker.call(find, FindCoordinatorResponse, 4)
    for transactional_id in IDS:
        request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=60_000)
        error = None
        while error in (None, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS):
            error = broker.call(request, InitProducerIdResponse, 4).error_code
        assert error == ErrorCode.NONE
    yield broker
    broker.close()


def listed(broker: SimulatedBroker, pattern: str | None) -> list[str] | ErrorCode:
    request = ListTransactionsRequest(transactional_id_pattern=pattern)
    answer = broker.call(request, ListTransactionsResponse, 2)
    if answer.error_code:
        return ErrorCode(answer.error_code)
    return sorted(each.transactional_id for each in answer.transaction_states)


def test_a_pattern_is_matched_with_whole_ids(broker: SimulatedBroker) -> None:
    assert listed(broker, None) == list(IDS)
    assert listed(broker, "a-.*") == ["a-1", "a-2"]
    assert listed(broker, "a") == []
    assert listed(broker, "[") is ErrorCode.INVALID_REGULAR_EXPRESSION


def test_a_pattern_is_matched_on_a_worker_with_ids_that_the_client_may_describe(
    broker: SimulatedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.services.authorizer = Forbids((ResourceType.TRANSACTIONAL_ID, "a-1"))
    matched: list[Sequence[str]] = []

    def remember(pattern: str, names: Sequence[str]) -> frozenset[str]:
        matched.append(sorted(names))
        return matching_names(pattern, names)

    monkeypatch.setattr("odradek.handlers.list_transactions.matching_names", remember)
    workers = CountingWorkers(broker)
    broker.services.groups.pattern_matching = PatternMatching(workers)  # type: ignore[arg-type]  # a stand-in for tests
    assert listed(broker, "a.*") == ["a-2"]
    assert matched == [["a-2", "b-1"]]
    assert workers.count == 1


def test_a_request_is_refused_while_many_patterns_wait(
    broker: SimulatedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pattern_matching, "MOST_WAITING_PATTERNS", -1)
    broker.services.groups.pattern_matching = PatternMatching(broker.host.workers)
    assert listed(broker, "a.*") is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert listed(broker, None) == list(IDS)


class CountingWorkers:
    def __init__(self, broker: SimulatedBroker) -> None:
        self._workers = broker.host.workers
        self.count = 0

    async def run(self, function: object, *arguments: object) -> object:
        self.count += 1
        return await self._workers.run(function, *arguments)  # type: ignore[arg-type]  # a stand-in for tests
