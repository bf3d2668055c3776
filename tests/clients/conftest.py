"""The two brokers that every client test runs on: Apache Kafka, which says what is right, and Odradek."""

from dataclasses import dataclass
from pathlib import Path

import pytest

ODRADEK = "odradek"
APACHE_KAFKA = "apache-kafka"


@dataclass(frozen=True, slots=True)
class Target:
    name: str
    bootstrap_servers: str
    log_directory: Path


@pytest.fixture(params=[pytest.param(APACHE_KAFKA, marks=pytest.mark.jvm), ODRADEK])
def target(request: pytest.FixtureRequest) -> Target:
    if request.param == APACHE_KAFKA:
        kafka = request.getfixturevalue("apache_kafka")
        return Target(APACHE_KAFKA, kafka.bootstrap_servers, kafka.log_directory)
    broker = request.getfixturevalue("odradek_session_broker")
    return Target(ODRADEK, broker.bootstrap_servers, Path(broker.data_directory))
