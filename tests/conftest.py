"""What tests may use of Apache Kafka: one broker for the whole run, or one line that says why there is none."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.jvm import jars
from tests.jvm.shared_kafka import KafkaAddress, SharedKafka, connect

_SHARED = pytest.StashKey[SharedKafka]()
_WORKER_INPUT = "shared_kafka_directory"


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
