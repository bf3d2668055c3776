"""A request for a feature that this broker does not have leaves one line in the log, at a limited rate."""

import struct

import pytest

from odradek.handlers.unsupported_features import INTERVAL_MS, UnsupportedFeatures
from odradek.protocol.malformed import MalformedMessage
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from tests.handlers.brokers import SimulatedBroker


def features(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [
        record.odradek_fields["feature"]  # type: ignore[attr-defined]  # the fields of our logger
        for record in caplog.records
        if record.getMessage() == "unsupported feature requested"
    ]


def test_a_search_for_a_coordinator_is_reported(simulated: SimulatedBroker, caplog: pytest.LogCaptureFixture) -> None:
    request = FindCoordinatorRequest(key_type=2, coordinator_keys=["a", "b"])
    simulated.call(request, FindCoordinatorResponse, 6)
    assert features(caplog) == ["share groups"]


@pytest.mark.parametrize(("api_key", "feature"), [(76, "share groups"), (88, "streams groups")])
def test_an_api_of_the_feature_is_reported(
    simulated: SimulatedBroker, caplog: pytest.LogCaptureFixture, api_key: int, feature: str
) -> None:
    frame = struct.pack(">hhih", api_key, 0, 7, 1) + b"c"
    with pytest.raises(MalformedMessage):
        simulated.node.compose_serving().dispatcher.handle(memoryview(bytearray(frame)), simulated.client)
    assert features(caplog) == [feature]


def test_a_plain_producer_is_not_reported(simulated: SimulatedBroker, caplog: pytest.LogCaptureFixture) -> None:
    simulated.call(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000), InitProducerIdResponse, 5)
    assert features(caplog) == []


class FixedClock:
    now = 0.0

    def monotonic_ms(self) -> float:
        return self.now


def test_a_feature_is_reported_once_a_minute_with_the_number_of_repetitions(caplog: pytest.LogCaptureFixture) -> None:
    reporter, clock = UnsupportedFeatures(), FixedClock()
    for now in (0, 1, 2, INTERVAL_MS - 1, INTERVAL_MS):
        clock.now = now
        reporter.report("transactions", clock, client="a", client_id="c")  # type: ignore[arg-type]  # it reads monotonic_ms only
    fields = [record.odradek_fields for record in caplog.records]  # type: ignore[attr-defined]
    assert [each.get("repeated") for each in fields] == [None, 3]
    assert fields[0] == {"feature": "transactions", "client": "a", "client_id": "c"}
