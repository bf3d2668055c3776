"""What all tests share: one Apache Kafka for the whole run, or one line that says why there is none; the settings of
Spark and Hypothesis; and the order in which they run."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from odradek.testing import RunningBroker, broker
from tests.jvm import jars
from tests.jvm.shared_kafka import KafkaAddress, SharedKafka, connect

_SHARED = pytest.StashKey[SharedKafka]()
_WORKER_INPUT = "shared_kafka_directory"

# An example takes as long as it takes: by default 200 ms are a failure, and a busy machine may pause for longer.
_UNHURRIED = hypothesis.settings(deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.register_profile("unhurried", _UNHURRIED)
hypothesis.settings.load_profile("unhurried")


def pytest_configure(config: pytest.Config) -> None:
    # Started in the background of a script, this process ignores Ctrl-C, and so would every command that it starts.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.setdefault("SPARK_CONF_DIR", str(Path(__file__).parent / "spark_conf"))
    if not hasattr(config, "workerinput"):
        config.stash[_SHARED] = SharedKafka()


def pytest_unconfigure(config: pytest.Config) -> None:
    if (shared := config.stash.get(_SHARED, None)) is not None:
        shared.close()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Called by pytest-xdist in the controller for each worker."""
    node.workerinput[_WORKER_INPUT] = str(node.config.stash[_SHARED].directory)


@pytest.hookimpl(trylast=True)  # after those were left out that nobody asked for
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What is long comes first, so that no worker is left with it at the end; what needs Spark before the rest, so that
    one worker does most of it in one warm session while the other does what is short, and steals.
    """
    if any(item.get_closest_marker("spark") is not None for item in items):
        from tests.jvm.spark_archive import use_archive

        use_archive()
    items.sort(key=lambda item: (item.get_closest_marker("spark") is None, -longest_s(item)))


def longest_s(item: pytest.Item) -> float:
    """How long a test may take, where it says so."""
    marker = item.get_closest_marker("timeout")
    return float(marker.args[0]) if marker is not None else 0.0


@pytest.fixture(scope="session")
def odradek_session_broker() -> Iterator[RunningBroker]:
    """The plugin's, but for what the oracle has too: a new group does not wait three seconds for more members."""
    with broker({"group.initial.rebalance.delay.ms": 0}) as running:
        yield running


@pytest.fixture(scope="session")
def jvm() -> None:
    """Skips, with the reason, where there is no JVM or no way to fetch Apache Kafka."""
    if reason := jars.missing():
        pytest.skip(reason)


@pytest.fixture(scope="session")
def apache_kafka(jvm: None, request: pytest.FixtureRequest) -> KafkaAddress:
    """The oracle: Apache Kafka, one for the whole run. Use topic names of your own."""
    worker_input = getattr(request.config, "workerinput", None)
    if worker_input is None:
        return connect(request.config.stash[_SHARED].directory)
    return connect(Path(worker_input[_WORKER_INPUT]))
