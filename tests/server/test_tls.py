"""A broker process with a TLS listener: mutual TLS, principals, certificates replaced while it runs."""

import contextlib
import os
import socket
import ssl
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # not in __all__
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from odradek.local.running_broker import RunningBroker
from tests.security.tls.certificates import HOSTS, CertificateFiles, authority, write_certificates
from tests.waiting import eventually

PATIENCE_S = 60.0


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> CertificateFiles:
    return write_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def running(files: CertificateFiles) -> Iterator[RunningBroker]:
    properties = {
        "listeners": "PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0",
        "advertised.listeners": "PLAINTEXT://127.0.0.1:0,SSL://localhost:0",
        **files.listener_properties(),
    }
    with RunningBroker(properties, host="127.0.0.1") as broker:
        yield broker


def tls_client(files: CertificateFiles, *, certificate: bool = True) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=files.ca)
    if certificate:
        context.load_cert_chain(files.client)
    return context


def served_serial(broker: RunningBroker, files: CertificateFiles) -> str:
    with (
        socket.create_connection((broker.host, broker.port), timeout=PATIENCE_S) as plain,
        tls_client(files).wrap_socket(plain, server_hostname="localhost") as secured,
    ):
        certificate = secured.getpeercert()
        assert certificate is not None
        return str(certificate["serialNumber"])


def wait_for_other_serial(broker: RunningBroker, files: CertificateFiles, old: str) -> str:
    def other() -> str | None:
        serial = served_serial(broker, files)
        return None if serial == old else serial

    return eventually(other, lambda: broker.output, pause_s=0.1) or ""


def test_records_go_there_and_back_over_mutual_tls(running: RunningBroker, files: CertificateFiles) -> None:
    client = {"bootstrap.servers": running.bootstrap_servers, **files.client_properties()}
    producer = Producer({**client, "linger.ms": 20})
    value = os.urandom(50_000)
    for index in range(200):
        producer.produce("tls-records", value, str(index))
    assert producer.flush(PATIENCE_S) == 0
    consumer = Consumer({**client, "group.id": "tls", "auto.offset.reset": "earliest"})
    consumer.subscribe(["tls-records"])
    keys: list[bytes | None] = []
    deadline = time.monotonic() + PATIENCE_S
    while len(keys) < 200:
        assert time.monotonic() < deadline
        for message in consumer.consume(100, 1.0):
            assert message.error() is None
            assert message.value() == value
            keys.append(message.key())
    consumer.close()
    assert keys == [str(index).encode() for index in range(200)]


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_client_without_a_certificate_is_refused(
    running: RunningBroker, files: CertificateFiles, version: ssl.TLSVersion
) -> None:
    context = tls_client(files, certificate=False)
    context.maximum_version = version
    with (
        socket.create_connection((running.host, running.port), timeout=PATIENCE_S) as plain,
        pytest.raises(ssl.SSLError, match=r"(?i)alert"),
        context.wrap_socket(plain, server_hostname="localhost") as secured,
    ):
        secured.recv(1)


def test_bytes_that_are_not_tls_close_the_connection(running: RunningBroker) -> None:
    with socket.create_connection((running.host, running.port), timeout=PATIENCE_S) as plain:
        plain.sendall(b"\0\0\0\x10 not a handshake")
        while plain.recv(100):
            pass


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_old_version_of_tls_is_refused(running: RunningBroker, files: CertificateFiles) -> None:
    context = tls_client(files)
    context.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
    context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.set_ciphers("ALL:@SECLEVEL=0")
    with (
        socket.create_connection((running.host, running.port), timeout=PATIENCE_S) as plain,
        pytest.raises(ssl.SSLError),
    ):
        context.wrap_socket(plain, server_hostname="localhost")


def test_changed_file_is_served_to_new_connections(running: RunningBroker, files: CertificateFiles) -> None:
    before = served_serial(running, files)
    path = Path(files.broker)
    with (
        socket.create_connection((running.host, running.port), timeout=PATIENCE_S) as plain,
        tls_client(files).wrap_socket(plain, server_hostname="localhost") as old,
    ):
        path.write_text("not a certificate")
        eventually(lambda: "certificate not replaced" in running.output)
        assert served_serial(running, files) == before
        path.write_text(authority().issue("broker", HOSTS))
        assert wait_for_other_serial(running, files, before) != before
        old.sendall(bytes.fromhex("0000000a0012000000000007ffff"))  # ApiVersions version 0
        assert old.recv(4)


def test_altered_location_is_served_when_the_answer_comes(
    running: RunningBroker, files: CertificateFiles, tmp_path: Path
) -> None:
    before = served_serial(running, files)
    other = tmp_path / "other.pem"
    other.write_text(authority().issue("broker", HOSTS))
    admin = AdminClient({"bootstrap.servers": running.bootstrap_servers, **files.client_properties()})
    entry = ConfigEntry(
        "listener.name.ssl.ssl.keystore.location", str(other), incremental_operation=AlterConfigOpType.SET
    )
    missing = ConfigEntry(
        "listener.name.ssl.ssl.keystore.location", "/none.pem", incremental_operation=AlterConfigOpType.SET
    )
    refused = ConfigResource(ResourceType.BROKER, "0", incremental_configs=[missing])
    with pytest.raises(KafkaException, match="No such file"):
        admin.incremental_alter_configs([refused])[refused].result(PATIENCE_S)
    assert served_serial(running, files) == before
    resource = ConfigResource(ResourceType.BROKER, "0", incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result(PATIENCE_S)
    changed = served_serial(running, files)
    described = admin.describe_configs([ConfigResource(ResourceType.BROKER, "0")])
    (future,) = described.values()
    shown = future.result(PATIENCE_S)
    assert shown["listener.name.ssl.ssl.keystore.location"].value == str(other)
    assert shown["ssl.keystore.key"].value is None
    former = ConfigEntry(entry.name, None, incremental_operation=AlterConfigOpType.DELETE)
    resource = ConfigResource(ResourceType.BROKER, "0", incremental_configs=[former])
    admin.incremental_alter_configs([resource])[resource].result(PATIENCE_S)
    assert changed != before == served_serial(running, files)


def test_connections_over_the_rate_wait_before_their_handshakes(files: CertificateFiles) -> None:
    """A handshake costs milliseconds: a flood of connections must not get more of them than the rate allows."""
    properties = {
        "listeners": "SSL://127.0.0.1:0",
        "advertised.listeners": "SSL://localhost:0",
        "max.connection.creation.rate": "5",
        "quota.window.num": "2",
        **files.listener_properties(),
    }
    with RunningBroker(properties, host="127.0.0.1") as broker:
        began = time.monotonic()
        with ThreadPoolExecutor(15) as threads:
            secured_s = sorted(threads.map(lambda _: (served_serial(broker, files), time.monotonic())[1], range(15)))
        # 5 at once, and about one more in each fifth of a second
        assert secured_s[-1] - began > 1
        assert secured_s[-1] - secured_s[4] > 0.8


def test_refused_connections_have_few_lines_and_a_count() -> None:
    properties = {"listeners": "PLAINTEXT://127.0.0.1:0", "max.connections.per.ip": "1"}
    with RunningBroker(properties, host="127.0.0.1") as broker:
        with socket.create_connection((broker.host, broker.port), timeout=PATIENCE_S) as first:
            first.sendall(b"\0")
            for _ in range(300):
                refused = socket.create_connection((broker.host, broker.port), timeout=PATIENCE_S)
                with refused, contextlib.suppress(ConnectionResetError):
                    assert not refused.recv(1)
            eventually(lambda: "further connections were refused" in broker.output)
        lines = broker.output.count("connection refused: max.connections.per.ip")
        assert lines < 150
