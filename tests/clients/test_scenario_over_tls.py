"""The scenario over mutual TLS: every client gets the answers that are recorded for a listener without TLS.

`make soak` runs it with every client, `make test` with one.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek.testing.cluster_network import find_stable_port
from odradek.testing.running_broker import RunningBroker
from tests.clients.client_limits import LIMITS
from tests.clients.conftest import ODRADEK
from tests.clients.drivers.client_security import VARIABLE
from tests.clients.drivers.stand_in import StandIn
from tests.clients.recorded import recorded_answers
from tests.clients.test_scenario import CHAPTERS, DRIVERS, MARKS
from tests.clients.transcript import Transcript
from tests.clients.wire.connection import Connection
from tests.security.tls.certificates import write_certificates

pytestmark = pytest.mark.timeout(600)

SECURED_DRIVERS = [name for name in DRIVERS if name != "franz-go"]


@pytest.fixture(scope="module")
def plain_port() -> int:
    return find_stable_port()


@pytest.fixture(scope="module")
def secured(plain_port: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    directory = tmp_path_factory.mktemp("certificates")
    files = write_certificates(directory)
    (directory / "client.properties").write_text(
        f"security.protocol=SSL\n"
        f"ssl.truststore.type=PEM\nssl.truststore.location={files.ca}\n"
        f"ssl.keystore.type=PEM\nssl.keystore.location={files.client}\n"
    )
    properties = {
        "listeners": f"PLAINTEXT://127.0.0.1:{plain_port},SSL://127.0.0.1:0",
        **files.listener_properties(),
    }
    with RunningBroker(properties) as broker:
        os.environ[VARIABLE] = str(Path(directory) / "client.properties")
        try:
            yield broker
        finally:
            del os.environ[VARIABLE]


def _parameter(name: str) -> object:
    return pytest.param(name, marks=MARKS.get(name, []) + ([] if name == "confluent-kafka" else [pytest.mark.soak]))


@pytest.mark.parametrize("name", [_parameter(each) for each in SECURED_DRIVERS])
def test_client_gets_the_same_answers_over_mutual_tls(
    name: str, secured: RunningBroker, plain_port: int, request: pytest.FixtureRequest
) -> None:
    if pytest.mark.jvm in MARKS.get(name, []):
        request.getfixturevalue("jvm")
    driver = DRIVERS[name](secured.bootstrap_servers)
    plain_servers = f"127.0.0.1:{plain_port}"
    with Connection(plain_servers) as connection:
        stand_in = StandIn(secured.bootstrap_servers, plain_servers)
        transcript = Transcript(driver, stand_in, LIMITS[name], ODRADEK, connection)
        for chapter, steps in CHAPTERS.items():
            transcript.perform(steps, recorded_answers(chapter, steps, may_miss=False))
    driver.close()
    assert not transcript.differences, "\n".join(str(each) for each in transcript.differences)
