"""The way to the controller: when requests on their way are given up, so that they are sent again."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from odradek.client.broker_clients import BrokerClients
from odradek.client.broker_connection import BrokerUnavailable
from odradek.configuration.listeners import Endpoint
from odradek.controller.route import ControllerRoute
from odradek.metadata.entities import BrokerImage
from odradek.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from tests.client.peer import Peer
from tests.simulation.simulated_host import Simulation

OWN, CONTROLLER, OTHER = 1, 2, 3
PORT = 9092
TIMEOUT_MS = 60_000.0


def image_of(controller_id: int, controller_epoch: int, fenced: tuple[int, ...] = ()) -> Any:
    brokers = {
        each: BrokerImage(each, {"PLAINTEXT": Endpoint(f"broker-{each}", PORT)}, None, 10, is_fenced=each in fenced)
        for each in (OWN, CONTROLLER, OTHER)
    }
    return SimpleNamespace(brokers=brokers, controller_id=controller_id, controller_epoch=controller_epoch)


BEFORE = image_of(CONTROLLER, 1)


def without_controller(image: Any) -> Any:
    brokers = {each: broker for each, broker in image.brokers.items() if each != CONTROLLER}
    return SimpleNamespace(**{**vars(image), "brokers": brokers})


def unchanged_but_renewed(image: Any) -> Any:
    brokers = {**image.brokers, OTHER: replace(image.brokers[OTHER], is_fenced=True)}
    return SimpleNamespace(**{**vars(image), "brokers": brokers})


@pytest.mark.parametrize(
    ("change", "is_given_up"),
    [
        (lambda _: image_of(OTHER, 2), True),
        (lambda _: image_of(CONTROLLER, 1, fenced=(CONTROLLER,)), True),
        (without_controller, True),
        (lambda _: image_of(CONTROLLER, 1, fenced=(OWN,)), True),
        (unchanged_but_renewed, False),
    ],
    ids=["another controller", "it is fenced", "it is gone", "this broker is fenced", "another broker is fenced"],
)
def test_requests_to_a_controller_that_may_never_answer_are_given_up(
    change: Callable[[Any], Any], is_given_up: bool
) -> None:
    simulation = Simulation(5)
    simulation.network.listen(f"broker-{CONTROLLER}", PORT, lambda: Peer(lambda _peer, _header: None))  # it is silent
    clients = BrokerClients(simulation.host, "odradek-1")
    subscribers: list[Any] = []
    cache: Any = SimpleNamespace(image=BEFORE, broker_config=SimpleNamespace(node_id=OWN), subscribe=subscribers.append)
    route = ControllerRoute(cache, clients, simulation.host.clock, "PLAINTEXT", lambda: None)

    async def story() -> None:
        call = asyncio.ensure_future(
            route.client("controller").call(ListGroupsRequest(), ListGroupsResponse, timeout_ms=TIMEOUT_MS)
        )
        await asyncio.sleep(1)  # a poll's pause: simulated time
        assert not call.done()
        for subscriber in subscribers:
            subscriber(BEFORE, change(BEFORE))
        await asyncio.sleep(0)  # the failure reaches the caller
        await asyncio.sleep(0)
        assert call.done() is is_given_up
        clients.close()
        with pytest.raises(BrokerUnavailable):
            await call

    try:
        simulation.loop.run_until_complete(story())
    finally:
        simulation.close()
