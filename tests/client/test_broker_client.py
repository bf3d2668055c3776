"""Connections between brokers: pipelining, deadlines, versions, and what a caller learns when one ends."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from odradek.client.broker_address import BrokerAddress
from odradek.client.broker_client import BrokerClient
from odradek.client.broker_clients import BrokerClients, Reachability
from odradek.client.broker_connection import IN_FLIGHT_LIMIT, BrokerUnavailable
from odradek.host.connecting import SystemNetwork
from odradek.host.frame_buffer import ReceiveBuffers
from odradek.host.host import real_host
from odradek.protocol.framing import RequestHeader
from odradek.protocol.messages.fetch import FetchRequest, FetchResponse
from odradek.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from tests.client.peer import Peer
from tests.simulation.simulated_host import Simulation

ADDRESS = BrokerAddress(2, 17, "other", 9092)
TIMEOUT_MS = 1000.0


class Scene:
    """This broker, and the other one on a simulated network."""

    def __init__(self, newest_version: int = 5) -> None:
        self.simulation = Simulation(1)
        self.network = self.simulation.network
        self.peers: list[Peer] = []
        self.on_request: Callable[[Peer, RequestHeader], None] = lambda peer, _: peer.answer()
        self._newest_version = newest_version
        self.network.listen("other", 9092, self._accept)
        self.clients = BrokerClients(self.simulation.host, "odradek-1")
        self.client = self.clients.to(ADDRESS, "test")

    def _accept(self) -> Peer:
        self.peers.append(Peer(self._requested, newest_version=self._newest_version))
        return self.peers[-1]

    def _requested(self, peer: Peer, header: RequestHeader) -> None:
        self.on_request(peer, header)

    def run(self, story: Coroutine[Any, Any, None]) -> None:
        try:
            self.simulation.loop.run_until_complete(story)
        finally:
            self.clients.close()
            self.simulation.close()

    async def call(self, timeout_ms: float = TIMEOUT_MS) -> int:
        response = await self.client.call(ListGroupsRequest(), ListGroupsResponse, timeout_ms=timeout_ms)
        return response.throttle_time_ms  # the correlation id


async def outcome_of(call: Coroutine[Any, Any, Any]) -> BrokerUnavailable:
    with pytest.raises(BrokerUnavailable) as caught:
        await call
    return caught.value


def test_requests_are_pipelined_and_answered_in_order() -> None:
    scene = Scene()

    def hold(peer: Peer, _: RequestHeader) -> None:
        if len(peer.unanswered) == 3:
            peer.answer()
            peer.answer()
            peer.answer()

    scene.on_request = hold

    async def story() -> None:
        assert await asyncio.gather(*(scene.call() for _ in range(3))) == [1, 2, 3]
        assert len(scene.peers) == 1

    scene.run(story())


def test_the_newest_common_version_is_used() -> None:
    scene = Scene(newest_version=3)
    seen: list[int] = []

    def note(peer: Peer, header: RequestHeader) -> None:
        seen.append(header.api_version)
        peer.answer()

    scene.on_request = note

    async def story() -> None:
        await scene.call()
        assert seen == [3]
        refused = scene.client.call(FetchRequest(), FetchResponse, timeout_ms=TIMEOUT_MS)
        assert "no version" in str(await outcome_of(refused))

    scene.run(story())


def test_a_missing_response_closes_the_connection_and_the_next_request_opens_another() -> None:
    scene = Scene()
    scene.on_request = lambda _peer, _header: None
    reasons: list[str] = []
    scene.client.on_closed(lambda _, reason: reasons.append(reason))

    async def story() -> None:
        await outcome_of(scene.call())
        assert reasons == ["a response did not come in time"]
        scene.on_request = lambda peer, _: peer.answer()
        assert await scene.call() == 1
        assert len(scene.peers) == 2
        assert scene.peers[0].is_lost

    scene.run(story())


def test_a_refused_connection_fails_the_request() -> None:
    scene = Scene()
    scene.network.crash("other")

    async def story() -> None:
        assert "refuses" in str(await outcome_of(scene.call()))

    scene.run(story())


def test_a_crash_of_the_peer_fails_every_request_on_its_way() -> None:
    scene = Scene()
    scene.on_request = lambda _peer, _header: scene.network.crash("other")

    async def story() -> None:
        await asyncio.gather(*(outcome_of(scene.call()) for _ in range(3)))

    scene.run(story())


def test_requests_wait_while_too_many_are_unanswered() -> None:
    scene = Scene()
    scene.on_request = lambda _peer, _header: None

    async def story() -> None:
        calls = [asyncio.ensure_future(scene.call(60_000)) for _ in range(IN_FLIGHT_LIMIT + 5)]
        await asyncio.sleep(1)  # a poll's pause: on virtual time
        peer = scene.peers[0]
        assert len(peer.unanswered) == IN_FLIGHT_LIMIT
        scene.on_request = lambda peer, _: peer.answer()
        for _ in range(IN_FLIGHT_LIMIT):
            peer.answer()
        assert await asyncio.gather(*calls) == list(range(1, IN_FLIGHT_LIMIT + 6))

    scene.run(story())


def test_a_cancelled_request_leaves_the_order_of_the_others() -> None:
    scene = Scene()
    scene.on_request = lambda _peer, _header: None

    async def story() -> None:
        calls = [asyncio.ensure_future(scene.call()) for _ in range(3)]
        await asyncio.sleep(0.2)  # a poll's pause: on virtual time
        calls[1].cancel()
        for _ in range(3):
            scene.peers[0].answer()
        assert await calls[0] == 1
        assert await calls[2] == 3

    scene.run(story())


def test_a_cut_network_is_a_timeout() -> None:
    scene = Scene()

    async def story() -> None:
        await scene.call()
        scene.network.cut("other", "simulated")
        await outcome_of(scene.call())
        await outcome_of(scene.call())  # it cannot even connect
        scene.network.heal()
        assert await scene.call() == 1

    scene.run(story())


def test_a_newer_registration_replaces_the_clients_of_an_older_one() -> None:
    scene = Scene()

    async def story() -> None:
        await scene.call()
        newer = ADDRESS._replace(broker_epoch=18)
        replaced = scene.clients.to(newer, "test")
        assert replaced is not scene.client
        assert replaced is scene.clients.to(newer, "test")
        await outcome_of(scene.call())
        with pytest.raises(BrokerUnavailable):
            scene.clients.to(ADDRESS, "test")

    scene.run(story())


def test_a_closed_client_fails_a_request_that_is_connecting() -> None:
    scene = Scene()
    scene.network.cut("simulated", "other")

    async def story() -> None:
        call = asyncio.ensure_future(outcome_of(scene.call(60_000)))
        await asyncio.sleep(0.2)  # a poll's pause: on virtual time
        scene.clients.close()
        await call

    scene.run(story())


def test_a_probe_tells_a_dead_broker_from_a_silent_one() -> None:
    scene = Scene()

    async def story() -> None:
        assert await scene.clients.probe(ADDRESS, timeout_ms=500) is Reachability.REACHED
        scene.network.cut("other", "simulated")
        assert await scene.clients.probe(ADDRESS, timeout_ms=500) is Reachability.SILENT
        scene.network.heal()
        scene.network.crash("other")
        assert await scene.clients.probe(ADDRESS, timeout_ms=500) is Reachability.REFUSED

    scene.run(story())


def test_real_sockets() -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: Peer(lambda peer, _: peer.answer()), "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        address = BrokerAddress(1, 1, "127.0.0.1", port)
        client = BrokerClient(address, SystemNetwork(), "odradek-1", ReceiveBuffers())
        calls = (client.call(ListGroupsRequest(), ListGroupsResponse, timeout_ms=60_000) for _ in range(3))
        assert [each.throttle_time_ms for each in await asyncio.gather(*calls)] == [1, 2, 3]

        def read(response: ListGroupsResponse) -> int:
            return response.throttle_time_ms

        assert await client.call_in_place(ListGroupsRequest(), ListGroupsResponse, read, timeout_ms=60_000) == 4
        client.close()
        server.close()
        clients = BrokerClients(real_host(), "odradek-1")
        assert await clients.probe(address, timeout_ms=60_000) is Reachability.REFUSED

    asyncio.run(story())


def test_a_cancelled_caller_is_cancelled_also_if_its_client_was_closed() -> None:
    """Otherwise a fetcher that is stopped because its leader has registered again would go on for ever."""
    scene = Scene()
    scene.network.cut("other", "simulated")

    async def story() -> None:
        caller = asyncio.ensure_future(scene.call())
        await asyncio.sleep(0.1)  # a poll's pause: simulated time
        scene.client.close()
        caller.cancel()
        await asyncio.wait([caller])
        assert caller.cancelled()

    scene.run(story())
