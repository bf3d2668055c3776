"""The scenario over mutual TLS, and over TLS with SCRAM: every client gets the answers recorded without TLS.

`make soak` runs it with every client, `make more` with one.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek.local.ports import find_stable_port
from odradek.local.running_broker import RunningBroker
from tests.clients.client_limits import LIMITS
from tests.clients.conftest import ODRADEK
from tests.clients.drivers import franz_go_driver
from tests.clients.drivers.client_security import VARIABLE
from tests.clients.drivers.stand_in import StandIn
from tests.clients.recorded import recorded_answers
from tests.clients.test_scenario import CHAPTERS, DRIVERS, MARKS
from tests.clients.transcript import Transcript
from tests.clients.wire.connection import Connection
from tests.security.tls.certificates import write_certificates

pytestmark = pytest.mark.timeout(600)

SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


@pytest.fixture(scope="module")
def plain_port() -> int:
    return find_stable_port()


@pytest.fixture(
    scope="module",
    params=[pytest.param("SSL", marks=pytest.mark.more), pytest.param("SASL_SSL", marks=pytest.mark.soak)],
)
def secured(
    plain_port: int, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[RunningBroker]:
    protocol: str = request.param
    directory = tmp_path_factory.mktemp("certificates")
    files = write_certificates(directory)
    lines = [
        f"security.protocol={protocol}",
        f"ssl.truststore.type=PEM\nssl.truststore.location={files.ca}",
    ]
    properties = {
        "listeners": f"PLAINTEXT://127.0.0.1:{plain_port},{protocol}://127.0.0.1:0",
        **files.listener_properties(),
    }
    data = directory / "data"
    if protocol == "SSL":
        lines += [f"ssl.keystore.type=PEM\nssl.keystore.location={files.client}"]
    else:
        lines += ["sasl.mechanism=SCRAM-SHA-512", f'sasl.jaas.config={SCRAM} required username="u" password="s3cret";']
        properties["sasl.enabled.mechanisms"] = "SCRAM-SHA-512"
        command = [sys.executable, "-m", "odradek", "user", "add", "u", "--data-dir", str(data)]
        subprocess.run(command, input="s3cret\n", text=True, check=True, timeout=60)
    (directory / "client.properties").write_text("\n".join([*lines, ""]))
    with RunningBroker(properties, data_directory=str(data)) as broker:
        os.environ[VARIABLE] = str(Path(directory) / "client.properties")
        try:
            yield broker
        finally:
            del os.environ[VARIABLE]


def _parameter(name: str) -> object:
    return pytest.param(name, marks=MARKS.get(name, []) + ([] if name == "confluent-kafka" else [pytest.mark.soak]))


@pytest.mark.parametrize("name", [_parameter(each) for each in DRIVERS])
def test_client_gets_the_same_answers_over_tls(
    name: str, secured: RunningBroker, plain_port: int, request: pytest.FixtureRequest
) -> None:
    if pytest.mark.jvm in MARKS.get(name, []):
        request.getfixturevalue("jvm")
    if name == "franz-go" and (reason := franz_go_driver.missing()):
        pytest.skip(reason)
    driver = DRIVERS[name](secured.bootstrap_servers)
    plain_servers = f"127.0.0.1:{plain_port}"
    with Connection(plain_servers) as connection:
        stand_in = StandIn(secured.bootstrap_servers, plain_servers)
        transcript = Transcript(driver, stand_in, LIMITS[name], ODRADEK, connection)
        for chapter, steps in CHAPTERS.items():
            transcript.perform(steps, recorded_answers(chapter, steps, may_miss=False))
    driver.close()
    assert not transcript.differences, "\n".join(str(each) for each in transcript.differences)
