"""The broker that the tests of this folder send requests to, and a check that it logs no error."""

import itertools
import logging
import uuid
from collections.abc import Iterator

import pytest

from tests.handlers.brokers import AnyBroker, ApacheKafkaBroker, SimulatedBroker
from tests.jvm.shared_kafka import KafkaAddress

_numbers = itertools.count()


@pytest.fixture
def simulated() -> Iterator[SimulatedBroker]:
    """Odradek, for a test that reads its internal state or restarts it."""
    broker = SimulatedBroker()
    yield broker
    broker.close()


@pytest.fixture(params=["odradek", pytest.param("apache-kafka", marks=[pytest.mark.jvm, pytest.mark.oracle])])
def broker(request: pytest.FixtureRequest) -> AnyBroker:
    """Odradek; in `make oracle` Apache Kafka, which must give the answers that the tests state."""
    if request.param == "apache-kafka":
        kafka: KafkaAddress = request.getfixturevalue("apache_kafka")
        return ApacheKafkaBroker(kafka.bootstrap_servers)
    simulated: SimulatedBroker = request.getfixturevalue("simulated")
    return simulated


@pytest.fixture
def name() -> str:
    """A topic name that no other test uses."""
    return f"t{next(_numbers)}-{uuid.uuid4().hex[:8]}"


@pytest.fixture(autouse=True)
def nothing_fails_unseen(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """An error in the log is a bug, whatever the client was answered; a test that provokes one clears the log."""
    yield
    # Clients of other tests may still be closing in this process.
    records = [each for each in caplog.get_records("call") if each.name != "odradek.cli.librdkafka"]
    errors = [record.getMessage() for record in records if record.levelno >= logging.ERROR]
    assert not errors
