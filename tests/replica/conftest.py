"""A simulated broker whose workers a test can hold back; errors in the log are failures, as for handlers."""

from collections.abc import Iterator

import pytest

from tests.handlers.brokers import SimulatedBroker
from tests.handlers.conftest import name, nothing_fails_unseen
from tests.replica.held_workers import HeldWorkers

__all__ = ["broker", "name", "nothing_fails_unseen", "workers"]


@pytest.fixture
def workers() -> HeldWorkers:
    return HeldWorkers()


@pytest.fixture
def broker(workers: HeldWorkers) -> Iterator[SimulatedBroker]:
    simulated = SimulatedBroker(workers)
    yield simulated
    workers.release_all()
    simulated.close()
