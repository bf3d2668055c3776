"""Real brokers for the tests of this folder: whatever is done to one, it may not print a traceback."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING

import pytest

from odradek.testing import RunningBroker
from tests.wire import WireClient

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PATIENCE_SECONDS = 60.0  # not how long it takes, but how long a busy machine may need


def eventually(condition: Callable[[], bool], what: str = "it") -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not happen"
        time.sleep(0.01)  # a poll's pause


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
