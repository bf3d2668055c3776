"""A Produce request that is answered at once is charged without a meter: the result is that of a meter. A request whose
client disconnects is charged for its time."""

from typing import Any

import hypothesis.strategies as st
from hypothesis import given

from odradek.configuration.broker_configs import BrokerConfig
from odradek.handlers.context import ClientConnection
from odradek.handlers.quota_enforcement import PRODUCE_KEY, QuotaEnforcement
from odradek.handlers.registry import build_registry
from odradek.protocol.framing import RequestHeader
from odradek.protocol.messages.fetch import FetchRequest, FetchResponse
from odradek.protocol.messages.produce import ProduceResponse
from odradek.security.principals import Principal

FETCH_KEY = FetchRequest.api_key
PRODUCE, FETCH = (build_registry()[key] for key in (PRODUCE_KEY, FETCH_KEY))
CONFIG = BrokerConfig.from_properties({"node.id": "1"})
DEFAULT_CLIENT = frozenset({("client-id", None)})
ALICE = frozenset({("user", "alice")})


class SetClock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.time_ms = 1_000_000.0

    def monotonic_ms(self) -> float:
        return self.time_ms


class Broker:
    def __init__(self, quotas: dict[Any, dict[str, float]]) -> None:
        self.clock = SetClock()
        self.quotas = QuotaEnforcement(CONFIG, self.clock)  # type: ignore[arg-type]  # no timers
        self.quotas.clients.update(quotas)
        self.connections = [ClientConnection("PLAINTEXT", "127.0.0.1") for _ in range(2)]


requests = st.tuples(
    st.integers(0, 1),  # the connection
    st.sampled_from(("alice", "bob")),
    st.sampled_from((None, "app", "other")),
    st.integers(100, 1_000_000),  # bytes
    st.floats(0.01, 300.0),  # how long it takes, in ms
    st.one_of(st.none(), st.sampled_from((0, 100))),  # the throttle time of the response; None for acks=0
    st.floats(0.0, 5_000.0),  # the pause before it, in ms
)
limits = st.dictionaries(
    st.sampled_from(("producer_byte_rate", "request_percentage")), st.sampled_from((0.5, 100.0, 1e5, 1e12)), max_size=2
)


@given(sequence=st.lists(requests, max_size=40), of_user=limits, of_clients=limits)
def test_produce_is_charged_as_with_a_meter(
    sequence: list[tuple[int, str, str | None, int, float, int | None, float]],
    of_user: dict[str, float],
    of_clients: dict[str, float],
) -> None:
    configured = {ALICE: of_user, DEFAULT_CLIENT: of_clients}
    metered, direct = Broker(configured), Broker(configured)
    for number, user, client_id, size_bytes, spent_ms, known_ms, pause_ms in sequence:
        results = []
        for broker in (metered, direct):
            broker.clock.time_ms += pause_ms
            started_ms = broker.clock.time_ms
            client = broker.connections[number]
            client.principal = Principal(name=user)
            response = None if known_ms is None else ProduceResponse(responses=[], throttle_time_ms=known_ms)
            if broker is metered:
                header = RequestHeader(PRODUCE_KEY, 9, 1, client_id, 0)
                meter = broker.quotas.begin(PRODUCE, header, client, size_bytes, started_ms)
                broker.clock.time_ms += spent_ms
                meter.finish(response)
            else:
                broker.clock.time_ms += spent_ms
                broker.quotas.charge_produce(client, client_id, size_bytes, started_ms, response)
            results.append((client.throttle_ms, response and response.throttle_time_ms, client.limits))
        assert results[0] == results[1]


def test_a_request_that_is_abandoned_is_charged_once_for_its_time() -> None:
    used = []
    for is_abandoned in (True, False):
        broker = Broker({DEFAULT_CLIENT: {"request_percentage": 1.0}})
        client = broker.connections[0]
        header = RequestHeader(FETCH_KEY, 12, 1, "app", 0)
        meter = broker.quotas.begin(FETCH, header, client, 100, broker.clock.time_ms)
        broker.clock.time_ms += 30.0
        meter.begin_wait()
        broker.clock.time_ms += 5.0
        for _ in range(2):
            if is_abandoned:
                meter.abandon()
            else:
                meter.finish(FetchResponse(responses=[]))
        limits = broker.quotas.clients.limits_of(client.principal.name, "app")
        used.append(broker.quotas.clients.record_request_time(limits, 80.0, int(broker.clock.time_ms)))
    assert used[0] == used[1] > 0
