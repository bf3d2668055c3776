"""Where the broker listens and what it advertises."""

import pytest

from odradek.configuration.broker_configs import BrokerConfig
from odradek.configuration.config_types import ConfigError
from odradek.configuration.listeners import (
    Endpoint,
    Listener,
    advertised_endpoints,
    parse_listeners,
    parse_protocol_map,
)
from odradek.security.protocols import SecurityProtocol


@pytest.mark.parametrize(
    ("entry", "listener"),
    [
        ("PLAINTEXT://127.0.0.1:9092", Listener("PLAINTEXT", "127.0.0.1", 9092)),
        ("plaintext://:0", Listener("PLAINTEXT", "", 0)),
        ("IN_1://[::1]:9092", Listener("IN_1", "::1", 9092)),
        ("X://kafka-1.example.org:65535", Listener("X", "kafka-1.example.org", 65535)),
    ],
)
def test_listeners_are_parsed(entry: str, listener: Listener) -> None:
    assert parse_listeners("listeners", [entry]) == (listener,)


@pytest.mark.parametrize(
    ("entries", "reason"),
    [
        (["localhost:9092"], "expected NAME://host:port"),
        (["PLAINTEXT://localhost"], "expected NAME://host:port"),
        (["PLAINTEXT://::1:9092"], "expected NAME://host:port"),
        (["PLAINTEXT://a:65536"], "the port must lie between 0 and 65535"),
        (["PLAINTEXT://a:-1"], "the port must lie between 0 and 65535"),
        (["PLAINTEXT://a:" + "9" * 9000], "the port must lie between 0 and 65535"),
        (["A://:1", "a://:2"], "each listener must have a different name"),
    ],
)
def test_malformed_listeners_are_refused(entries: list[str], reason: str) -> None:
    with pytest.raises(ConfigError, match="for configuration listeners: " + reason):
        parse_listeners("listeners", entries)


@pytest.mark.parametrize(
    ("properties", "reason"),
    [
        ({"listeners": "PLAINTEXT://a:1,B://b:1"}, "each listener must have a different port, but 1 is used twice"),
        ({"listeners": ""}, "there must be at least one listener"),
        ({"listeners": "B://a:1"}, "add B:PLAINTEXT to listener.security.protocol.map"),
        ({"listener.security.protocol.map": "A:HTTP"}, "with one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"),
        ({"advertised.listeners": "OTHER://a:1"}, "OTHER is not one of the listeners: PLAINTEXT"),
        ({"advertised.listeners": "PLAINTEXT://0.0.0.0:1"}, "clients cannot connect to 0.0.0.0"),
        ({"advertised.listeners": "PLAINTEXT://[::]:1"}, "clients cannot connect to ::"),
    ],
)
def test_listeners_that_cannot_work_are_refused(properties: dict[str, str], reason: str) -> None:
    with pytest.raises(ConfigError) as caught:
        BrokerConfig.from_properties(properties)
    assert reason in str(caught.value)


def test_ipv4_and_ipv6_may_share_a_port_and_so_may_free_ports() -> None:
    mapping = {"listener.security.protocol.map": "A:PLAINTEXT,B:PLAINTEXT"}
    assert len(BrokerConfig.from_properties({**mapping, "listeners": "A://127.0.0.1:9,B://[::1]:9"}).listeners) == 2
    assert len(BrokerConfig.from_properties({**mapping, "listeners": "A://127.0.0.1:0,B://127.0.0.1:0"}).listeners) == 2


def test_protocol_map_is_parsed() -> None:
    assert parse_protocol_map("a:plaintext, B:SASL_SSL") == {
        "A": SecurityProtocol.PLAINTEXT,
        "B": SecurityProtocol.SASL_SSL,
    }


def advertise(listeners: str, advertised: str = "", **bound_ports: int) -> dict[str, Endpoint]:
    return advertised_endpoints(
        parse_listeners("listeners", listeners.split(",")),
        parse_listeners("advertised.listeners", advertised.split(",") if advertised else []),
        bound_ports,
        "machine.example.org",
    )


def test_concrete_host_is_advertised_with_the_port_the_kernel_gave() -> None:
    assert advertise("P://127.0.0.1:0", P=40123) == {"P": Endpoint("127.0.0.1", 40123)}


@pytest.mark.parametrize("host", ["", "0.0.0.0", "[::]"])
def test_wildcard_is_advertised_as_the_machines_name(host: str) -> None:
    assert advertise(f"P://{host}:9092", P=9092) == {"P": Endpoint("machine.example.org", 9092)}


def test_what_the_user_says_wins() -> None:
    assert advertise("P://:9092,Q://:9093", "P://outside:1000", P=9092, Q=9093) == {
        "P": Endpoint("outside", 1000),
        "Q": Endpoint("machine.example.org", 9093),
    }
    assert advertise("P://:0", "P://outside:0", P=7) == {"P": Endpoint("outside", 7)}
    assert advertise("P://10.0.0.1:9092", "P://:9092", P=9092) == {"P": Endpoint("machine.example.org", 9092)}
