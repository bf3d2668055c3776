"""The pytest plugin: fixtures that give a test a real broker. Imports nothing but pytest until one is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.testing.running_broker import RunningBroker


@pytest.fixture
def odradek_broker() -> Iterator[RunningBroker]:
    """A fresh, empty broker for this test alone; it may be killed and restarted."""
    from odradek.testing.running_broker import broker  # noqa: PLC0415 - paid for by its users only

    with broker() as running:
        yield running


@pytest.fixture(scope="session")
def odradek_session_broker() -> Iterator[RunningBroker]:
    """One broker for all tests of the session (of the worker, with pytest-xdist): use topic names of your own."""
    from odradek.testing.running_broker import broker  # noqa: PLC0415 - paid for by its users only

    with broker() as running:
        yield running
