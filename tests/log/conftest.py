"""A simulated host for what needs no real files, and a real one for what does."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek.host.host import Host, real_host
from tests.simulation.simulated_host import Simulation


@pytest.fixture
def simulation() -> Iterator[Simulation]:
    simulation = Simulation(0)
    simulation.disk.make_directories("/data")
    simulation.disk.sync_directory("/")
    yield simulation
    simulation.close()


@pytest.fixture
def host() -> Iterator[Host]:
    host = real_host()
    yield host
    host.workers.close()


@pytest.fixture
def directory(tmp_path: Path) -> str:
    return str(tmp_path / "topic-0")
