"""From a frame to an answer: versions, headers, and what becomes of a request that cannot be served."""

import struct

import pytest

from odradek.handlers.context import CloseConnection
from odradek.handlers.registry import build_registry
from odradek.protocol.errors import ErrorCode
from odradek.protocol.malformed import MalformedMessage
from odradek.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from odradek.protocol.messages.metadata import MetadataResponse
from tests.handlers.brokers import AnyBroker, SimulatedBroker, joined
from tests.handlers.requests import create_topic, list_offset
from tests.wire import decode_response

# Without a subscription to clients' metrics: tests/handlers/test_telemetry.py has those with one.
APIS = {key: api for key, api in build_registry().items() if not api.is_telemetry}
KAFKA_APIS = {key: api for key, api in APIS.items() if not api.is_own}


def raw(broker: SimulatedBroker, frame: bytes) -> object:
    return broker.node.compose_serving().dispatcher.handle(memoryview(bytearray(frame)), broker.client)


def header(api_key: int, version: int, correlation_id: int = 7, client_id: bytes | None = b"c") -> bytes:
    name = struct.pack(">h", -1) if client_id is None else struct.pack(">h", len(client_id)) + client_id
    return struct.pack(">hhi", api_key, version, correlation_id) + name


# --- ApiVersions


@pytest.mark.parametrize("version", range(5))
def test_what_is_advertised_is_what_is_registered(simulated: SimulatedBroker, version: int) -> None:
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1.0")
    answer = simulated.call(request, ApiVersionsResponse, version)
    assert answer.error_code == ErrorCode.NONE
    reported = {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}
    assert reported == {key: (0 if key == 0 else api.min_version, api.max_version) for key, api in KAFKA_APIS.items()}


@pytest.mark.parametrize(
    ("software", "version", "is_listed"),
    [("odradek", 3, True), ("odradek", 4, True), ("odradek-x", 4, False), ("odradek", 2, False)],
)
def test_own_apis_are_listed_for_own_clients_only(
    simulated: SimulatedBroker, software: str, version: int, is_listed: bool
) -> None:
    request = ApiVersionsRequest(client_software_name=software, client_software_version="1.0")
    listed = {each.api_key for each in simulated.call(request, ApiVersionsResponse, version).api_keys}
    assert listed == (set(APIS) if is_listed else set(KAFKA_APIS))


def test_the_ranges_are_within_those_of_apache_kafka(broker: AnyBroker) -> None:
    """Ours against ours here; against the oracle by hand."""
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1.0")
    answer = broker.call(request, ApiVersionsResponse, 4)
    theirs = {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}
    for key, api in KAFKA_APIS.items():
        assert theirs[key][0] <= api.min_version <= api.max_version <= theirs[key][1], api.name


@pytest.mark.parametrize("version", [5, 6, 99, 32767])
def test_a_newer_client_is_answered_in_the_oldest_format(simulated: SimulatedBroker, version: int) -> None:
    frame = header(18, version, correlation_id=42) + b"\0\1\2\3 whatever a later version may hold"
    answer = raw(simulated, frame)
    assert isinstance(answer, list)
    data = joined(answer)
    assert struct.unpack_from(">i", data)[0] == 42
    reported = decode_response(ApiVersionsResponse, data, 0)
    assert reported.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert 18 in {each.api_key for each in reported.api_keys}


@pytest.mark.parametrize(
    ("software", "version", "is_valid"),
    [
        ("librdkafka", "2.16.0", True),
        ("a", "1", True),
        ("a-b.c", "1-rc.1", True),
        ("", "1", False),
        ("a", "", False),
        ("-a", "1", False),
        ("a.", "1", False),
        ("a b", "1", False),
        ("a\n", "1", False),
    ],
)
def test_the_clients_name_is_checked(broker: AnyBroker, software: str, version: str, is_valid: bool) -> None:
    request = ApiVersionsRequest(client_software_name=software, client_software_version=version)
    error = ErrorCode.NONE if is_valid else ErrorCode.INVALID_REQUEST
    for api_version in (3, 4):
        assert broker.call(request, ApiVersionsResponse, api_version).error_code == error


# --- other APIs


@pytest.mark.parametrize("key", sorted(set(APIS) - {18}))
def test_versions_that_are_not_served_are_refused(simulated: SimulatedBroker, key: int) -> None:
    for version in (APIS[key].min_version - 1, APIS[key].max_version + 1, -1, 32767):
        with pytest.raises(MalformedMessage, match=APIS[key].name):
            raw(simulated, header(key, version) + b"\0" * 20)


@pytest.mark.parametrize("key", [-1, 4, 5, 6, 7, 999, 32767])
def test_apis_that_are_not_served_are_refused(simulated: SimulatedBroker, key: int) -> None:
    with pytest.raises(MalformedMessage, match=str(key)):
        raw(simulated, header(key, 0) + b"\0" * 20)


@pytest.mark.parametrize("client_id", [None, b"", b"x" * 300])
def test_a_client_may_have_any_name_or_none(simulated: SimulatedBroker, client_id: bytes | None) -> None:
    frame = header(3, 1, client_id=client_id) + struct.pack(">i", 0)
    answer = raw(simulated, frame)
    assert isinstance(answer, list)
    assert decode_response(MetadataResponse, joined(answer), 1).brokers


def test_a_handler_that_fails_is_logged_and_closes_the_connection(
    simulated: SimulatedBroker, name: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    create_topic(simulated, name)
    monkeypatch.setattr(type(simulated.services.partitions), "find", lambda *_: 1 / 0)
    with pytest.raises(CloseConnection, match="ListOffsets failed"):
        list_offset(simulated, name, -1)
    assert [record.getMessage() for record in caplog.records] == ["request failed"]
    caplog.clear()


def test_a_handler_that_fails_later_is_logged_and_closes_the_connection(
    simulated: SimulatedBroker, name: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    create_topic(simulated, name)
    monkeypatch.setattr(type(simulated.services.partitions), "find", lambda *_: 1 / 0)
    with pytest.raises(CloseConnection, match="ListOffsets failed"):
        list_offset(simulated, name, 1)
    assert [record.getMessage() for record in caplog.records] == ["request failed"]
    caplog.clear()
