"""Peers that mean harm, on a TLS listener: none holds a connection, and others are served."""

import contextlib
import os
import re
import socket
import ssl
import struct
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from odradek.protocol.messages.api_versions import ApiVersionsRequest
from odradek.testing import RunningBroker
from tests.security.tls.certificates import CertificateFiles, authority, write_certificates
from tests.security.tls.openssl_client import key_updates_until_closed, missing, renegotiates
from tests.waiting import eventually
from tests.wire import encode_request

pytestmark = pytest.mark.timeout(120)
PATIENCE_S = 30.0
MOST_GROWTH_BYTES = 16 << 20
HANDSHAKE, CLIENT_HELLO, TLS_1_0, TLS_1_2 = 22, 1, 0x0301, 0x0303
KEY_UPDATES = 5_000


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> CertificateFiles:
    return write_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def running(files: CertificateFiles) -> Iterator[RunningBroker]:
    properties = {
        "listeners": "SSL://127.0.0.1:0",
        "advertised.listeners": "SSL://localhost:0",
        "security.inter.broker.protocol": "SSL",
        **files.listener_properties("requested"),
    }
    with RunningBroker(properties) as broker:
        yield broker
    assert "Traceback" not in broker.output


@pytest.fixture(autouse=True)
def unharmed(running: RunningBroker, files: CertificateFiles) -> Iterator[None]:
    process = psutil.Process(running.pid)
    ask(running, client_context(files))
    before, memory = len(process.net_connections("tcp")), process.memory_info().rss
    yield
    ask(running, client_context(files))
    eventually(lambda: len(process.net_connections("tcp")) <= before, "the end of the connections")
    assert process.memory_info().rss - memory < MOST_GROWTH_BYTES


def client_context(files: CertificateFiles) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=files.ca)


def connect(broker: RunningBroker) -> socket.socket:
    return socket.create_connection(("127.0.0.1", broker.port), timeout=PATIENCE_S)


def ask(broker: RunningBroker, context: ssl.SSLContext, server_name: str = "localhost") -> None:
    with connect(broker) as plain, context.wrap_socket(plain, server_hostname=server_name) as secured:
        secured.sendall(encode_request(ApiVersionsRequest(), 0))
        assert secured.recv(4)


def is_closed(plain: socket.socket) -> bool:
    with contextlib.suppress(ConnectionError):
        while plain.recv(1 << 16):
            pass
    return True


def record(content: bytes, kind: int = HANDSHAKE) -> bytes:
    return struct.pack(">BHH", kind, TLS_1_0, len(content)) + content


def client_hello(extensions: bytes) -> bytes:
    body = struct.pack(">H", TLS_1_2) + bytes(32) + b"\0" + b"\0\2\x13\x01" + b"\1\0"
    body += struct.pack(">H", len(extensions)) + extensions
    return record(bytes([CLIENT_HELLO]) + len(body).to_bytes(3, "big") + body)


def server_name(content: bytes) -> bytes:
    return struct.pack(">HH", 0, len(content)) + content


GARBAGE = {
    "not TLS": os.urandom(20_000),
    "a record of another kind": record(b"early", 23) * 100,
    "a hello that is cut and continues as noise": client_hello(b"")[:20] + os.urandom(500),
    "a hello of 16 MB": record(b"\1\xff\xff\xff" + bytes(16_000)) * 4,
    "extensions beyond the hello": client_hello(struct.pack(">HH", 0, 0xFFFF)),
    "a server name of garbage": client_hello(server_name(b"\0\x0a\0\0\x07" + b"\xff\0/../"[:7])),
    "a server name beyond its list": client_hello(server_name(b"\xff\xff\0\xff\xff")),
    "thousands of alerts": record(b"\1\0", 21) * 4_000,
    "empty records": record(b"") * 4_000,
}


@pytest.mark.parametrize("name", GARBAGE)
def test_garbage_in_a_handshake_closes_the_connection(running: RunningBroker, name: str) -> None:
    with connect(running) as plain:
        with contextlib.suppress(OSError):
            plain.sendall(GARBAGE[name])
            plain.shutdown(socket.SHUT_WR)
        assert is_closed(plain)


def test_a_server_name_that_the_broker_does_not_have_is_served(running: RunningBroker, files: CertificateFiles) -> None:
    context = client_context(files)
    context.check_hostname = False
    ask(running, context, "a" * 63 + ".example")


def test_handshakes_that_stop_half_way_hold_nothing(running: RunningBroker) -> None:
    """Silent, or with half a hello; both at once, and closed after ten seconds."""
    with contextlib.ExitStack() as stack:
        peers = [stack.enter_context(connect(running)) for _ in range(50)]
        for each in peers[::2]:
            each.sendall(client_hello(b"")[:30])
        assert all(is_closed(each) for each in peers)


def test_hundreds_of_handshakes_in_a_row(running: RunningBroker, files: CertificateFiles) -> None:
    context = client_context(files)
    for _ in range(300):
        with connect(running) as plain, context.wrap_socket(plain, server_hostname="localhost"):
            pass


def test_thousands_of_small_records_at_once_are_no_attack(running: RunningBroker, files: CertificateFiles) -> None:
    with connect(running) as plain, client_context(files).wrap_socket(plain, server_hostname="localhost") as secured:
        for _ in range(20):
            for _ in range(200):
                secured.sendall(encode_request(ApiVersionsRequest(), 0))
            for _ in range(200):
                (size,) = struct.unpack(">i", read_exactly(secured, 4))
                read_exactly(secured, size)


def read_exactly(secured: ssl.SSLSocket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = secured.recv(size - len(data))
        assert more, "the connection ended"
        data += more
    return data


@pytest.mark.skipif(missing() is not None, reason=missing() or "")
def test_a_flood_of_key_updates_closes_the_connection(running: RunningBroker) -> None:
    """Each takes 0.1 ms of the event loop, and 27 bytes of the peer."""
    assert key_updates_until_closed(running.port, KEY_UPDATES) < KEY_UPDATES


@pytest.mark.skipif(missing() is not None, reason=missing() or "")
def test_a_client_cannot_renegotiate(running: RunningBroker) -> None:
    """A second handshake of a connection would take the event loop, not the thread of handshakes."""
    assert not any(renegotiates(running.port) for _ in range(50))


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("shape", ["huge", "deep"])
def test_strange_certificates_of_clients_are_refused(
    running: RunningBroker, files: CertificateFiles, tmp_path: Path, version: ssl.TLSVersion, shape: str
) -> None:
    """A certificate of 300 kB, and a chain of 400, both valid."""
    pem = tmp_path / "client.pem"
    if shape == "huge":
        pem.write_text(authority().issue("mallory", [f"host-{number}.{'x' * 50}.example" for number in range(4_000)]))
    else:
        own = authority().issue("mallory")
        certificate = re.search(r"-----BEGIN CERTIFICATE-----.*", own, re.DOTALL)
        assert certificate is not None
        pem.write_text(own + certificate[0] * 400)
    context = client_context(files)
    context.minimum_version = context.maximum_version = version
    context.load_cert_chain(pem)
    with pytest.raises((ssl.SSLError, ConnectionError, AssertionError)):
        ask(running, context)
