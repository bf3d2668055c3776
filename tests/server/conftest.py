"""Real brokers for the tests of this folder: whatever is done to one, it may not print a traceback."""

import contextlib
from collections.abc import Iterator

import pytest

from odradek.testing import RunningBroker
from tests.wire import WireClient


@contextlib.contextmanager
def watched_broker(properties: dict[str, str] | None = None) -> Iterator[RunningBroker]:
    running = RunningBroker(properties or {})
    try:
        yield running.start()
    finally:
        running.close()
    assert "Traceback" not in running.output
    assert " ERROR " not in running.output


@pytest.fixture(scope="module")
def running() -> Iterator[RunningBroker]:
    """For all tests of a module: use topics of your own."""
    with watched_broker({"auto.create.topics.enable": "false"}) as broker:
        yield broker


@pytest.fixture
def client(running: RunningBroker) -> Iterator[WireClient]:
    with WireClient(running.port) as connected:
        yield connected
