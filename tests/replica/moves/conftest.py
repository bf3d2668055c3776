"""A simulated broker with three log directories."""

from collections.abc import Iterator

import pytest

from tests.handlers.brokers import SimulatedBroker


@pytest.fixture
def broker() -> Iterator[SimulatedBroker]:
    broker = SimulatedBroker(log_dirs="/one,/two,/three")
    yield broker
    broker.close()
