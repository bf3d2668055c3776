"""Every client performs the same scenario and gets the answers of Apache Kafka that are recorded in expected/scenario.

In `make oracle` Apache Kafka performs it again; with `--update` its answers to confluent-kafka are recorded. The run
that records a changed answer reports it as a difference; a new step is recorded without one, and no driver checks it.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest

from tests.clients.client_limits import LIMITS
from tests.clients.conftest import APACHE_KAFKA, Target
from tests.clients.drivers import franz_go_driver
from tests.clients.drivers.confluent_driver import ConfluentDriver
from tests.clients.drivers.driver import Driver, LineDriver
from tests.clients.drivers.stand_in import StandIn
from tests.clients.drivers.tools_driver import ToolsDriver
from tests.clients.recorded import record_answers, recorded_answers
from tests.clients.scenario import configs, consume, deletion, produce, topics, transactions
from tests.clients.transcript import Transcript
from tests.clients.wire.connection import Connection
from tests.jvm.build_cache import exclusive
from tests.jvm.jars import CLIENT_POM, POM, java_command

# A JVM to fetch and start, a Go program to build: the first run on a machine takes minutes.
pytestmark = pytest.mark.timeout(600)

CHAPTERS = {
    "topics": topics.STEPS,
    "produce": produce.STEPS,
    "consume": consume.STEPS,
    "transactions": transactions.STEPS,
    "topic_configs": configs.TOPIC_STEPS,
    "broker_configs": configs.BROKER_STEPS,
    "deletion": deletion.STEPS,
}
RECORDING_DRIVER = "confluent-kafka"  # it shows every field


def _python(module: str) -> Callable[[str], Driver]:
    command = [sys.executable, "-m", f"tests.clients.drivers.{module}"]
    return lambda bootstrap_servers: LineDriver([*command, bootstrap_servers])


def _java(pom: Path) -> Callable[[str], Driver]:
    return lambda bootstrap_servers: LineDriver(java_command("odradek.ClientDriver", bootstrap_servers, pom=pom))


DRIVERS: dict[str, Callable[[str], Driver]] = {
    "aiokafka": _python("aiokafka_driver"),
    "confluent-kafka": ConfluentDriver,
    "franz-go": franz_go_driver.franz_go_driver,
    "java": _java(CLIENT_POM),
    "java-4.3": _java(POM),
    "kafka-python": _python("kafka_python_driver"),
    "kafka-tools": ToolsDriver,
}
IN_MORE = ("aiokafka", "kafka-python", "franz-go", "java")
IN_SOAK = ("java-4.3", "kafka-tools")
MARKS = {
    "java": [pytest.mark.jvm],
    "java-4.3": [pytest.mark.jvm],
    "kafka-tools": [pytest.mark.jvm],
    "franz-go": [pytest.mark.go],
}


def _parameter(name: str) -> Any:
    """Librdkafka runs in `make test`, the other clients in `make more`.

    Kafka's tools run in `make soak`: a tool for each step takes the longest, and other tests run them, too. So does
    the older Java client: the tools, which other tests run, contain it."""
    suites = [pytest.mark.soak] if name in IN_SOAK else [pytest.mark.more] if name in IN_MORE else []
    return pytest.param(name, marks=[*MARKS.get(name, []), *suites])


@pytest.fixture(params=[_parameter(name) for name in DRIVERS])
def driver_name(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    if pytest.mark.jvm in MARKS.get(name, []):
        request.getfixturevalue("jvm")
    if name == "franz-go" and (reason := franz_go_driver.missing()):
        pytest.skip(reason)
    return name


@pytest.fixture
def driver(driver_name: str, target: Target) -> Iterator[Driver]:
    driver = DRIVERS[driver_name](target.bootstrap_servers)
    yield driver
    driver.close()


def test_client_gets_the_answers_of_the_scenario(
    driver_name: str, driver: Driver, target: Target, connection: Connection, is_recording: bool
) -> None:
    stand_in = StandIn(target.bootstrap_servers)
    transcript = Transcript(driver, stand_in, LIMITS[driver_name], target.name, connection)
    records = is_recording and target.name == APACHE_KAFKA and driver_name == RECORDING_DRIVER
    for name, steps in CHAPTERS.items():
        expected = recorded_answers(name, steps, may_miss=is_recording)
        with _exclusive_broker(target) if name == "broker_configs" else nullcontext():
            answers = transcript.perform(steps, expected)
        if records:
            record_answers(name, steps, answers)
    assert not transcript.differences, "\n".join(str(each) for each in transcript.differences)


def _exclusive_broker(target: Target) -> AbstractContextManager[None]:
    """For a chapter that changes settings of the broker, which all drivers share."""
    return exclusive(target.log_directory.with_name("broker-configs.lock"))
