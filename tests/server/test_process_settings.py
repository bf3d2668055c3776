"""Settings of several processes: consecutive ids and ports, a directory each."""

import pytest

from odradek.conventions.properties_file import PropertiesError
from odradek.server.process_settings import process_settings
from odradek.server.properties import broker_config, load_properties


def settings(count: int, *overrides: str) -> list[list[str]]:
    config = broker_config(load_properties(None, {}, ["zookeeper.connect=z:2181", *overrides]))
    return [each.overrides() for each in process_settings(config, count)]


def test_ids_and_ports_follow_those_of_the_properties() -> None:
    assert settings(2, "node.id=7", "listeners=PLAINTEXT://[::1]:9092", "log.dirs=/a/,/b") == [
        [
            "node.id=7",
            "broker.id=7",
            "listeners=PLAINTEXT://[::1]:9092",
            "log.dirs=/a/broker-7,/b/broker-7",
            "metrics.listener=127.0.0.1:0",
        ],
        [
            "node.id=8",
            "broker.id=8",
            "listeners=PLAINTEXT://[::1]:9093",
            "log.dirs=/a/broker-8,/b/broker-8",
            "metrics.listener=127.0.0.1:0",
        ],
    ]


@pytest.mark.parametrize(
    ("value", "of_each"),
    [
        ("127.0.0.1:9644", ["127.0.0.1:9644", "127.0.0.1:9645"]),
        ("[::1]:9644", ["[::1]:9644", "[::1]:9645"]),
        (":9644", [":9644", ":9645"]),
        ("127.0.0.1:0", ["127.0.0.1:0", "127.0.0.1:0"]),
        ("", ["", ""]),
    ],
)
def test_each_process_serves_metrics_on_the_next_port(value: str, of_each: list[str]) -> None:
    found = [each[-1] for each in settings(2, f"metrics.listener={value}")]
    assert found == [f"metrics.listener={each}" for each in of_each]


@pytest.mark.parametrize(
    ("path", "of_second"),
    [("/var/log/audit.log", "/var/log/broker-8/audit.log"), ("audit.log", "broker-8/audit.log")],
)
def test_each_process_has_an_audit_log_of_its_own(path: str, of_second: str) -> None:
    first, second = settings(2, "node.id=7", f"audit.log.path={path}")
    assert first[-1] == f"audit.log.path={of_second.replace('8', '7')}"
    assert second[-1] == f"audit.log.path={of_second}"
    assert not any(each.startswith("audit.log.path") for each in settings(1)[0])


def test_advertised_ports_follow_too() -> None:
    _, second = settings(2, "listeners=PLAINTEXT://:9092", "advertised.listeners=PLAINTEXT://kafka.example:19092")
    assert "advertised.listeners=PLAINTEXT://kafka.example:19093" in second


def test_a_port_that_the_kernel_chose_is_kept() -> None:
    config = broker_config(load_properties(None, {}, ["zookeeper.connect=z:2181", "listeners=PLAINTEXT://127.0.0.1:0"]))
    (one,) = process_settings(config, 1)
    assert "listeners=PLAINTEXT://127.0.0.1:0" in one.overrides()
    assert "listeners=PLAINTEXT://127.0.0.1:4711" in one.with_ports({"PLAINTEXT": 4711}).overrides()


@pytest.mark.parametrize(
    ("overrides", "complaint"),
    [
        (["zookeeper.connect="], "needs zookeeper.connect"),
        (["listeners=PLAINTEXT://:65535"], "the largest is 65535"),
        (["metrics.listener=127.0.0.1:65535"], "metrics.listener: process 2 needs port 65536"),
        (
            [
                "listeners=ONE://h:9092,TWO://h:9093",
                "listener.security.protocol.map=ONE:PLAINTEXT,TWO:PLAINTEXT",
                "inter.broker.listener.name=ONE",
            ],
            "ONE and TWO would both use 9093",
        ),
    ],
)
def test_settings_that_several_processes_cannot_have_are_refused(overrides: list[str], complaint: str) -> None:
    with pytest.raises(PropertiesError, match=complaint):
        settings(2, *overrides)
