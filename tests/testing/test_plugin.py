"""The pytest plugin: what its fixtures give, and what it costs those who do not use it."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

USE = """
def test_alone(odradek_broker, odradek_session_broker):
    assert odradek_broker.is_running
    assert odradek_broker.port != odradek_session_broker.port
    odradek_broker.kill()

def test_another_is_fresh(odradek_broker):
    assert odradek_broker.is_running

def test_shared(odradek_session_broker):
    assert odradek_session_broker.is_running
"""


CONFIGURED = """
import pytest
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType


def value(running, name):
    admin = AdminClient({"bootstrap.servers": running.bootstrap_servers})
    (future,) = admin.describe_configs([ConfigResource(ResourceType.BROKER, "0")]).values()
    return future.result()[name].value


@pytest.fixture
def odradek_broker_properties():
    return {"num.partitions": 3}


@pytest.fixture(scope="session")
def odradek_session_broker_properties():
    return {"num.partitions": 4, "group.initial.rebalance.delay.ms": 500}


def test_properties(odradek_broker, odradek_session_broker):
    assert value(odradek_broker, "num.partitions") == "3"
    assert value(odradek_broker, "group.initial.rebalance.delay.ms") == "0"
    assert value(odradek_session_broker, "num.partitions") == "4"
    assert value(odradek_session_broker, "group.initial.rebalance.delay.ms") == "500"
"""


@pytest.mark.parametrize(("suite", "passed"), [(USE, 3), (CONFIGURED, 1)])
def test_the_fixtures_are_there_without_importing_anything_and_can_be_configured(
    tmp_path: Path, suite: str, passed: int
) -> None:
    (tmp_path / "test_suite.py").write_text(suite)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", str(tmp_path)]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout
    assert f"{passed} passed" in ran.stdout


def test_the_plugin_imports_nothing_until_it_is_used() -> None:
    program = (
        "import pytest, sys, time; before = set(sys.modules); began = time.process_time(); "
        "import odradek.testing.plugin; took = time.process_time() - began; "
        "print(sorted(set(sys.modules) - before), took)"
    )
    output = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
    modules, _, seconds = output.rpartition(" ")
    assert modules == "['odradek', 'odradek.deferred', 'odradek.testing', 'odradek.testing.plugin']"
    assert float(seconds) < 0.05  # a millisecond of processor where nothing else runs
