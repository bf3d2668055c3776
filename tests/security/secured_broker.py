"""A broker with a listener for each way to connect, and the files that clients need for them."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from odradek.local.ports import find_stable_port
from odradek.local.running_broker import RunningBroker
from tests.security.tls.certificates import write_certificates

SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
USER, PASSWORD = "etl", "wOmbat-7-crossing"
PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_SSL")


@dataclass(frozen=True, slots=True)
class SecuredBroker:
    ports: dict[str, int]
    directory: Path

    def servers(self, protocol: str) -> str:
        return f"127.0.0.1:{self.ports[protocol]}"

    def properties_file(self, protocol: str) -> Path:
        """Properties of a Java client, as `--command-config` takes them."""
        return self.directory / f"{protocol}.properties"


@contextmanager
def secured_broker(directory: Path, **more: str) -> Iterator[SecuredBroker]:
    files = write_certificates(directory)
    ports = {protocol: find_stable_port() for protocol in PROTOCOLS}
    broker = SecuredBroker(ports, directory)
    trust = {"ssl.truststore.type": "PEM", "ssl.truststore.location": files.ca}
    login = f'{SCRAM_MODULE} required username="{USER}" password="{PASSWORD}";'
    of_clients = {
        "PLAINTEXT": {},
        "SSL": {**trust, "ssl.keystore.type": "PEM", "ssl.keystore.location": files.client},
        "SASL_SSL": {**trust, "sasl.mechanism": "SCRAM-SHA-512", "sasl.jaas.config": login},
    }
    for protocol, properties in of_clients.items():
        given = {"bootstrap.servers": broker.servers(protocol), "security.protocol": protocol, **properties}
        text = "".join(f"{name}={value}\n" for name, value in given.items())
        broker.properties_file(protocol).write_text(text)
    data = directory / "data"
    command = [sys.executable, "-m", "odradek", "user", "add", USER, "--data-dir", str(data)]
    subprocess.run(command, input=f"{PASSWORD}\n", text=True, check=True, timeout=60)
    settings = {
        "listeners": ",".join(f"{protocol}://127.0.0.1:{port}" for protocol, port in ports.items()),
        "sasl.enabled.mechanisms": "SCRAM-SHA-512",
        **files.listener_properties(),
        **more,
    }
    with RunningBroker(settings, data_directory=str(data)):
        yield broker
