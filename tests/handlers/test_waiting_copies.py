"""The memory of requests that wait for another broker is counted, bounded and released."""

import pytest

from odradek.coordinator.runtime.waiting_response import WaitingResponse
from odradek.handlers import waiting_copies
from odradek.handlers.waiting_copies import WaitingCopies
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from tests.handlers.brokers import SimulatedBroker, joined
from tests.handlers.requests import batch, create_topic
from tests.wire import decode_response

VERSION = 11


def test_one_request_may_wait_whatever_its_size_is() -> None:
    copies = WaitingCopies()
    assert copies.has_room(waiting_copies.MOST_WAITING_BYTES + 1)
    with copies.holding(waiting_copies.MOST_WAITING_BYTES - 1):
        assert copies.has_room(1)
        assert not copies.has_room(2)
    assert copies.used_bytes == 0


def test_one_broker_that_is_awaited_gets_half_of_the_memory() -> None:
    copies, half = WaitingCopies(), waiting_copies.MOST_WAITING_BYTES // 2
    with copies.holding(half, 1):
        assert not copies.has_room(1, 1)
        assert copies.has_room(half, 2)
        with copies.holding(half, 2):
            assert not copies.has_room(1, 3)
        assert copies.has_room(half, 2)
    assert copies.used_bytes == 0
    assert copies.has_room(half, 1)


@pytest.fixture
def verdicts(monkeypatch: pytest.MonkeyPatch) -> list[WaitingResponse]:
    """Those of a coordinator that has not answered yet, in the order of the requests."""
    asked: list[WaitingResponse] = []

    def verify(*_: object) -> WaitingResponse:
        asked.append(WaitingResponse(lambda error: error))
        return asked[-1]

    monkeypatch.setattr("odradek.handlers.produce.verify_batches", verify)
    return asked


def transactional_request(topic: str, value: bytes, transactional_id: str = "id") -> ProduceRequest:
    records = memoryview(batch(value, producer=(7, 0, 0), transactional=True))
    data = [PartitionProduceData(index=0, records=records)]
    return ProduceRequest(
        transactional_id=transactional_id,
        acks=-1,
        timeout_ms=1_000,
        topic_data=[TopicProduceData(name=topic, partition_data=data)],
    )


def test_a_batch_that_waits_for_its_coordinator_counts_until_the_answer(
    simulated: SimulatedBroker, name: str, verdicts: list[WaitingResponse]
) -> None:
    create_topic(simulated, name)
    copies = simulated.services.verified_copies
    waiting = simulated.handle(transactional_request(name, bytes(10_000)), VERSION)
    assert copies.used_bytes > 10_000
    answers: list[object] = []
    waiting.then(answers.append)
    verdicts[0]({(name, 0): ErrorCode.INVALID_TXN_STATE})
    assert copies.used_bytes == 0
    assert len(answers) == 1


def test_a_batch_whose_client_is_gone_is_released(
    simulated: SimulatedBroker, name: str, verdicts: list[WaitingResponse]
) -> None:
    create_topic(simulated, name)
    copies = simulated.services.verified_copies
    waiting = simulated.handle(transactional_request(name, bytes(10_000)), VERSION)
    waiting.cancel()
    assert copies.used_bytes == 0
    verdicts[0]({(name, 0): ErrorCode.NONE})
    assert copies.used_bytes == 0


def test_a_batch_beyond_the_limit_is_refused_with_an_error_that_clients_retry(
    simulated: SimulatedBroker, name: str, verdicts: list[WaitingResponse], monkeypatch: pytest.MonkeyPatch
) -> None:
    create_topic(simulated, name)
    monkeypatch.setattr(waiting_copies, "MOST_WAITING_BYTES", 15_000)
    first = simulated.handle(transactional_request(name, bytes(10_000)), VERSION)
    answer = simulated.handle(transactional_request(name, bytes(10_000)), VERSION)
    refused = decode_response(ProduceResponse, joined(answer), VERSION)
    assert refused.responses[0].partition_responses[0].error_code == ErrorCode.NOT_ENOUGH_REPLICAS
    assert verdicts[1].result() is None, "the answer of the coordinator is not awaited"
    first.cancel()


def test_batches_that_wait_for_one_coordinator_do_not_keep_those_of_others_from_waiting(
    simulated: SimulatedBroker, name: str, verdicts: list[WaitingResponse], monkeypatch: pytest.MonkeyPatch
) -> None:
    create_topic(simulated, name)
    monkeypatch.setattr(waiting_copies, "MOST_WAITING_BYTES", 30_000)
    leaders = {"slow": 7, "sound": 8}
    monkeypatch.setattr(simulated.services.transactions.topic, "leader_of", leaders.get)
    used_bytes = []
    for transactional_id in ("slow", "slow", "slow", "sound"):
        simulated.handle(transactional_request(name, bytes(10_000), transactional_id), VERSION)
        used_bytes.append(simulated.services.verified_copies.used_bytes // 10_000)
    assert used_bytes == [1, 1, 1, 2]
    for each in (verdicts[0], verdicts[-1]):
        each({(name, 0): ErrorCode.INVALID_TXN_STATE})
    assert simulated.services.verified_copies.used_bytes == 0
