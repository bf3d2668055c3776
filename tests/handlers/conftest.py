"""The broker that the tests of this folder ask, and a watch on what it logs."""

from __future__ import annotations

import itertools
import logging
import os
import uuid
from typing import TYPE_CHECKING

import pytest

from tests.handlers.brokers import ApacheKafkaBroker, SimulatedBroker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.handlers.brokers import AnyBroker

ORACLE = os.environ.get("ODRADEK_TEST_ORACLE")
_numbers = itertools.count()


@pytest.fixture
def simulated() -> Iterator[SimulatedBroker]:
    """Ours, for a test that looks inside or restarts it."""
    if ORACLE:
        pytest.skip("looks inside the broker: not for Apache Kafka")
    broker = SimulatedBroker()
    yield broker
    broker.close()


@pytest.fixture
def broker(request: pytest.FixtureRequest) -> AnyBroker:
    if ORACLE:
        return ApacheKafkaBroker(ORACLE)
    simulated: SimulatedBroker = request.getfixturevalue("simulated")
    return simulated


@pytest.fixture
def name() -> str:
    """A topic's name that nobody else uses."""
    return f"t{next(_numbers)}-{uuid.uuid4().hex[:8]}"


@pytest.fixture(autouse=True)
def nothing_fails_unseen(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """An error in the log is a bug, whatever the client was told; a test that provokes one clears the log."""
    yield
    errors = [record.getMessage() for record in caplog.get_records("call") if record.levelno >= logging.ERROR]
    assert not errors
