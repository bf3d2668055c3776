"""Instances and values of a broker: bounds, expiry, and bombs that are refused without memory."""

from typing import Any
from uuid import UUID

import pytest

from odradek.configuration.config_types import ConfigResourceType
from odradek.host.entropy import SystemEntropy
from odradek.metadata.image import ConfigResource
from odradek.protocol.compression import Compression, compress
from odradek.protocol.errors import ErrorCode
from odradek.telemetry import client_telemetry
from odradek.telemetry.client_telemetry import ClientTelemetry, Push, read_push
from odradek.telemetry.subscriptions import ClientFacts, Subscription
from tests.memory import memory_of
from tests.server.manual_clock import ManualClock
from tests.telemetry.otlp_data import counter, metrics_data

CLIENT = ClientFacts("app", "java", "4.3", "10.0.0.1", 4711)
MOST_BYTES = 1 << 20
NO_ID = UUID(int=0)


class Telemetry:
    def __init__(self) -> None:
        self.clock = ManualClock()
        self.configs: dict[ConfigResource, dict[str, str]] = {}
        self.rules = ClientTelemetry(self.clock, SystemEntropy(), lambda: self.configs)

    def configure(self, name: str, **settings: str) -> None:
        values = {key.replace("_", "."): value for key, value in settings.items()}
        self.configs = {**self.configs, ConfigResource(ConfigResourceType.CLIENT_METRICS, name): values}

    def subscribe(self, client: ClientFacts = CLIENT) -> Any:
        return self.rules.subscribe(NO_ID, client)

    def push(self, instance_id: UUID, subscription_id: int, metrics: bytes, compression: int = 0) -> ErrorCode:
        push = Push(instance_id, subscription_id, False, compression, metrics)
        begun = self.rules.begin_push(push, CLIENT, MOST_BYTES)
        if isinstance(begun, ErrorCode):
            return begun
        return self.rules.finish_push(begun, push, read_push(push, MOST_BYTES))


@pytest.fixture
def telemetry() -> Telemetry:
    return Telemetry()


def test_values_of_a_push_are_kept(telemetry: Telemetry) -> None:
    telemetry.configure("all", metrics="*", interval_ms="1000")
    instance_id, requested = telemetry.subscribe()
    assert requested.metrics == ("*",)
    assert telemetry.push(instance_id, requested.subscription_id, metrics_data(counter("sent", 5))) == 0
    assert [(each.name, each.total) for each in telemetry.rules.aggregates()] == [("sent", 5.0)]


def test_metrics_that_were_not_requested_are_not_kept(telemetry: Telemetry) -> None:
    pushed = metrics_data(counter("org.sent", 5), counter("org.received", 5), counter("other", 5))
    instance_id, requested = telemetry.subscribe()
    assert telemetry.push(instance_id, requested.subscription_id, pushed) == 0
    assert telemetry.rules.values_of(instance_id) is None
    telemetry.configure("some", metrics="org.se,none", interval_ms="1000")
    instance_id, requested = telemetry.subscribe()
    assert telemetry.push(instance_id, requested.subscription_id, pushed) == 0
    assert [each.name for each in telemetry.rules.aggregates()] == ["org.sent"]


def test_garbage_is_an_invalid_record(telemetry: Telemetry) -> None:
    instance_id, requested = telemetry.subscribe()
    assert telemetry.push(instance_id, requested.subscription_id, b"\xff" * 50) == ErrorCode.INVALID_RECORD
    assert list(telemetry.rules.aggregates()) == []


def test_a_subscription_chooses_clients(telemetry: Telemetry) -> None:
    telemetry.configure("java", metrics="a", match="client_software_name=jav.,client_source_port=47[0-9]+")
    assert telemetry.subscribe()[1].metrics == ("a",)
    assert telemetry.subscribe(client=CLIENT._replace(software_name="javax"))[1].metrics == ()
    assert telemetry.subscribe(client=CLIENT._replace(port=80))[1].metrics == ()


def test_a_pattern_that_takes_for_ever_elsewhere_does_not_here() -> None:
    subscription = Subscription("s", ("a",), 1000, (("client_id", "(a+)+$"),))
    assert not subscription.matches({"client_id": "a" * 30_000 + "!"})
    assert not Subscription("s", ("a",), 1000, (("client_id", "(?=a)a"),)).matches({"client_id": "a"})


def test_instances_are_bounded(telemetry: Telemetry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_telemetry, "MOST_INSTANCES", 10)
    first = telemetry.subscribe()[0]
    for _ in range(10):
        telemetry.subscribe()
    assert telemetry.rules.instance_count == 10
    assert telemetry.rules.instance(first) is None


def test_a_closed_connection_ends_the_instance_and_leaves_its_values(telemetry: Telemetry) -> None:
    telemetry.configure("all", metrics="*")
    instance_id, requested = telemetry.subscribe()
    telemetry.push(instance_id, requested.subscription_id, metrics_data(counter("sent", 5)))
    telemetry.rules.connection_closed(instance_id)
    assert telemetry.rules.instance(instance_id) is None
    assert telemetry.rules.instance_ids() == [instance_id]


def test_instances_and_values_expire_after_three_intervals(telemetry: Telemetry) -> None:
    telemetry.configure("all", metrics="*", interval_ms="30000")
    instance_id, requested = telemetry.subscribe()
    telemetry.push(instance_id, requested.subscription_id, metrics_data(counter("sent", 5)))
    telemetry.clock.advance(89_999)
    telemetry.rules.expire()
    assert telemetry.rules.instance_ids() == [instance_id]
    telemetry.clock.advance(1)
    telemetry.rules.expire()
    assert telemetry.rules.instance_ids() == []


@pytest.mark.parametrize("codec", [Compression.GZIP, Compression.SNAPPY, Compression.LZ4, Compression.ZSTD])
def test_a_bomb_is_refused_before_its_memory_is_taken(telemetry: Telemetry, codec: Compression) -> None:
    instance_id, requested = telemetry.subscribe()
    bomb = compress(codec, bytes(200 << 20))[:MOST_BYTES]

    def push() -> None:
        error = telemetry.push(instance_id, requested.subscription_id, bomb, codec)
        assert error == ErrorCode.INVALID_RECORD

    assert memory_of(push).peak_bytes < 16 << 20
