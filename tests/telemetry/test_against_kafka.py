"""Conversations about telemetry have the answers that Apache Kafka gives; `make oracle ARGS=--update` records them."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from odradek.testing import broker
from tests.jvm.apache_kafka import ApacheKafka
from tests.telemetry.conversations import CONVERSATIONS, converse

EXPECTED = Path(__file__).parent / "expected" / "conversations.json"


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with broker() as running:
        yield int(running.bootstrap_servers.rpartition(":")[2])


@pytest.fixture(scope="module")
def kafka() -> Iterator[ApacheKafka]:
    with ApacheKafka({"metric.reporters": "odradek.TelemetryReceiver"}) as running:
        yield running


def recorded() -> dict[str, Any]:
    answers: dict[str, Any] = json.loads(EXPECTED.read_text()) if EXPECTED.exists() else {}
    return answers


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_conversations_have_the_recorded_answers(port: int, name: str) -> None:
    assert converse(port, name) == recorded()[name]


@pytest.mark.jvm
@pytest.mark.oracle
@pytest.mark.timeout(300)
def test_apache_kafka_gives_the_recorded_answers(kafka: ApacheKafka, request: pytest.FixtureRequest) -> None:
    answers = {name: converse(kafka.port, name) for name in CONVERSATIONS}
    if request.config.getoption("--update"):
        EXPECTED.write_text(json.dumps(answers, indent=1) + "\n")
    assert answers == recorded()
