"""InitProducerId: every producer has an id of its own, whatever happens to the broker."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from odradek.controller.requests import AllocateProducerIds
from odradek.metadata.store import StoreError
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from tests.handlers.brokers import AnyBroker, SimulatedBroker


def new_id(broker: AnyBroker, version: int = 5) -> int:
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=2**31 - 1)
    response = broker.call(request, InitProducerIdResponse, version)
    assert (response.error_code, response.producer_epoch) == (ErrorCode.NONE, 0)
    return response.producer_id


@pytest.mark.parametrize("version", range(6))
def test_ids_differ(broker: AnyBroker, version: int) -> None:
    assert len({new_id(broker, version) for _ in range(20)}) == 20


def test_ids_differ_over_restarts_and_crashes(simulated: SimulatedBroker) -> None:
    given = [new_id(simulated) for _ in range(3)]
    for end in (simulated.restart, simulated.kill, simulated.kill, simulated.restart):
        end()
        given += [new_id(simulated) for _ in range(3)]
    assert len(set(given)) == len(given)


def test_ids_differ_over_blocks(simulated: SimulatedBroker) -> None:
    given = [new_id(simulated) for _ in range(2100)]
    assert len(set(given)) == len(given)


def test_many_at_once_get_different_ids(simulated: SimulatedBroker) -> None:
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
    waiting = [simulated.begin(request, InitProducerIdResponse) for _ in range(50)]
    given = [each.result().producer_id for each in waiting]
    assert len(set(given)) == 50


def test_a_producer_that_had_an_id_gets_a_new_one(broker: AnyBroker) -> None:
    request = InitProducerIdRequest(
        transactional_id=None, transaction_timeout_ms=1000, producer_id=1_000_000, producer_epoch=3
    )
    response = broker.call(request, InitProducerIdResponse)
    assert (response.error_code, response.producer_epoch) == (ErrorCode.NONE, 0)
    assert response.producer_id != 1_000_000


async def refuse(*_: object) -> int:
    raise StoreError("no controller has answered in time")


async def hang(*_: object) -> int:
    await asyncio.sleep(30)  # a measured time, of the simulated clock
    return await refuse()


@pytest.mark.parametrize("transactional_id", [None, "payments"])
@pytest.mark.parametrize("allocate", [refuse, hang])
def test_requests_without_a_controller_fail_together_with_an_error_that_clients_retry(
    simulated: SimulatedBroker,
    monkeypatch: pytest.MonkeyPatch,
    transactional_id: str | None,
    allocate: Callable[..., Any],
) -> None:
    coordinator = FindCoordinatorRequest(key_type=1, coordinator_keys=["payments"])
    simulated.call(coordinator, FindCoordinatorResponse)
    monkeypatch.setattr(simulated.services.controller, "ask", allocate)
    request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=1000)
    began_ms = simulated.elapsed_ms()
    for waiting in [simulated.begin(request, InitProducerIdResponse) for _ in range(3)]:
        response = waiting.result()
        refused = (response.error_code, response.producer_id, response.producer_epoch)
        assert refused == (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, -1, -1)
    assert simulated.elapsed_ms() - began_ms <= 5001


def test_a_block_that_comes_late_is_used(simulated: SimulatedBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    async def allocate_late(request: AllocateProducerIds) -> int:
        await asyncio.sleep(8)  # a measured time, of the simulated clock
        return 7 * request.count

    monkeypatch.setattr(simulated.services.controller, "ask", allocate_late)
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
    assert simulated.call(request, InitProducerIdResponse).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert simulated.call(request, InitProducerIdResponse).producer_id == 7000


@pytest.mark.parametrize(("producer_id", "producer_epoch"), [(5, -1), (-1, 5)])
def test_an_incomplete_producer_identity_is_an_invalid_request(
    broker: AnyBroker, producer_id: int, producer_epoch: int
) -> None:
    request = InitProducerIdRequest(
        transactional_id=None, transaction_timeout_ms=1000, producer_id=producer_id, producer_epoch=producer_epoch
    )
    response = broker.call(request, InitProducerIdResponse)
    assert (response.error_code, response.producer_id, response.producer_epoch) == (ErrorCode.INVALID_REQUEST, -1, -1)


def test_an_empty_transactional_id_is_refused(simulated: SimulatedBroker) -> None:
    request = InitProducerIdRequest(transactional_id="", transaction_timeout_ms=1000)
    response = simulated.call(request, InitProducerIdResponse)
    assert (response.error_code, response.producer_id, response.producer_epoch) == (ErrorCode.INVALID_REQUEST, -1, -1)
