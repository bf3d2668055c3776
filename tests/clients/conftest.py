"""The brokers that every client test runs on: Odradek, and in `make oracle` Apache Kafka."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.clients.wire.connection import Connection
from tests.clients.wire.requests import create_topic, new_topic_name
from tests.clients.wire.waiting import await_topic

ODRADEK = "odradek"
APACHE_KAFKA = "apache-kafka"


@dataclass(frozen=True, slots=True)
class Target:
    name: str
    bootstrap_servers: str
    log_directory: Path


# Apache Kafka only in `make oracle`: it must give the answers that the tests state.
BROKERS = [pytest.param(APACHE_KAFKA, marks=[pytest.mark.jvm, pytest.mark.oracle]), ODRADEK]


@pytest.fixture(scope="session", params=BROKERS)
def target(request: pytest.FixtureRequest) -> Target:
    if request.param == APACHE_KAFKA:
        kafka = request.getfixturevalue("apache_kafka")
        return Target(APACHE_KAFKA, kafka.bootstrap_servers, kafka.log_directory)
    broker = request.getfixturevalue("odradek_session_broker")
    return Target(ODRADEK, broker.bootstrap_servers, Path(broker.data_directory))


@pytest.fixture
def is_recording(request: pytest.FixtureRequest) -> bool:
    """True in `make oracle ARGS=--update`: the answers of Apache Kafka are written to `expected`."""
    return bool(request.config.getoption("update"))


@pytest.fixture
def connection(target: Target) -> Iterator[Connection]:
    """A bare connection to the broker."""
    with Connection(target.bootstrap_servers) as connection:
        yield connection


@pytest.fixture
def topic(connection: Connection) -> str:
    """A fresh topic with two partitions that keeps its records, however old they say they are."""
    return wire_topic(connection, partitions=2)


def wire_topic(connection: Connection, *, partitions: int = 1, configs: dict[str, str] | None = None) -> str:
    name = new_topic_name()
    assert create_topic(connection, name, partitions, {"retention.ms": "-1", **(configs or {})}) == "NONE"
    await_topic(connection, name, partitions)
    return name
