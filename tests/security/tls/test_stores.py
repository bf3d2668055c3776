"""Keys and certificates of every kind of store become a TLS context, or an error that says what to do."""

import ssl
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
    pkcs12,
)
from cryptography.x509 import load_pem_x509_certificate

from odradek.security.tls.contexts import client_context, listener_context
from odradek.security.tls.settings import ClientAuth, KeyStoreSettings, TlsSettings, TrustStoreSettings
from odradek.security.tls.store_problem import StoreProblem
from odradek.security.tls.stores import read_key_material, read_trusted_certificates
from tests.security.tls.certificates import HOSTS, authority

PREFIX = "listener.name.x."


def read_file(path: str) -> bytes:
    return Path(path).read_bytes()


def settings(store: KeyStoreSettings, trust: TrustStoreSettings | None = None) -> TlsSettings:
    return TlsSettings(PREFIX, store, trust or TrustStoreSettings(), ClientAuth.REQUIRED)


def handshake(server: ssl.SSLContext, client: ssl.SSLContext, host: str = "localhost") -> tuple[bytes | None, str]:
    """The client's certificate as the server sees it, and the version of TLS."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = server.wrap_bio(to_server, to_client, server_side=True)
    theirs = client.wrap_bio(to_client, to_server, server_hostname=host)
    run_handshake(ours, theirs)
    return ours.getpeercert(binary_form=True), ours.version() or ""


def run_handshake(ours: ssl.SSLObject, theirs: ssl.SSLObject) -> None:
    waiting = {ours, theirs}
    for _ in range(10):
        for side in (theirs, ours):
            if side in waiting:
                try:
                    side.do_handshake()
                except ssl.SSLWantReadError:
                    continue
                waiting.discard(side)
    assert not waiting


@pytest.fixture
def key_and_chain() -> tuple[str, str]:
    both = authority().issue("broker", HOSTS)
    start = both.index("-----BEGIN CERTIFICATE")
    return both[:start], both[start:]


def test_pem_inline_and_in_a_file_make_a_context(tmp_path: Path, key_and_chain: tuple[str, str]) -> None:
    key, chain = key_and_chain
    file = tmp_path / "broker.pem"
    file.write_text(chain + key)
    trust = TrustStoreSettings("PEM", certificates=authority().certificate_pem)
    client_file = tmp_path / "client.pem"
    client_file.write_text(authority().issue("alice"))
    client = client_context(settings(KeyStoreSettings(None, str(client_file)), trust), read_file)
    for store in (
        KeyStoreSettings("PEM", str(file)),
        KeyStoreSettings("JKS", str(file)),  # Kafka's default: the content decides
        KeyStoreSettings("PEM", key=key.replace("\n", " "), certificate_chain=chain),
    ):
        certificate, version = handshake(listener_context(settings(store, trust), read_file), client)
        assert certificate is not None
        assert version == "TLSv1.3"


def test_resumed_session_has_the_certificate_of_the_first(key_and_chain: tuple[str, str]) -> None:
    key, chain = key_and_chain
    trust = TrustStoreSettings("PEM", certificates=authority().certificate_pem)
    both = authority().issue("alice")
    place = both.index("-----BEGIN CERT")
    client = client_context(
        settings(KeyStoreSettings("PEM", key=both[:place], certificate_chain=both[place:]), trust), read_file
    )
    client.maximum_version = ssl.TLSVersion.TLSv1_2  # the session is complete after the handshake
    server = listener_context(settings(KeyStoreSettings("PEM", key=key, certificate_chain=chain), trust), read_file)
    session, first, _ = connect(server, client, None)
    again, second, is_reused = connect(server, client, session)
    assert again is not None
    assert is_reused
    assert first == second
    assert second is not None


def connect(
    server: ssl.SSLContext, client: ssl.SSLContext, session: ssl.SSLSession | None
) -> tuple[ssl.SSLSession | None, bytes | None, bool | None]:
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = server.wrap_bio(to_server, to_client, server_side=True)
    theirs = client.wrap_bio(to_client, to_server, server_hostname="localhost", session=session)
    run_handshake(ours, theirs)
    return theirs.session, ours.getpeercert(binary_form=True), theirs.session_reused


def test_encrypted_key_needs_its_password(tmp_path: Path, key_and_chain: tuple[str, str]) -> None:
    key, chain = key_and_chain
    encrypted = load_pem_private_key(key.encode(), None).private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"hunter2")
    )
    file = tmp_path / "broker.pem"
    file.write_text(encrypted.decode() + chain)
    listener_context(settings(KeyStoreSettings("PEM", str(file), key_password="hunter2")), read_file)
    with pytest.raises(StoreProblem, match=r"set ssl\.key\.password"):
        listener_context(settings(KeyStoreSettings("PEM", str(file))), read_file)
    with pytest.raises(StoreProblem) as problem:
        listener_context(settings(KeyStoreSettings("PEM", str(file), key_password="wrong-one")), read_file)
    assert "wrong-one" not in str(problem.value)


def test_pkcs12_stores_hold_keys_and_trusted_certificates(tmp_path: Path, key_and_chain: tuple[str, str]) -> None:
    key, chain = key_and_chain
    trusted = load_pem_x509_certificate(authority().certificate_pem.encode())
    data = pkcs12.serialize_key_and_certificates(
        b"broker",
        load_pem_private_key(key.encode(), None),  # type: ignore[arg-type]  # an RSA or EC key
        load_pem_x509_certificate(chain.encode()),
        [trusted],
        BestAvailableEncryption(b"changeit"),
    )
    file = tmp_path / "broker.p12"
    file.write_bytes(data)
    material = read_key_material(KeyStoreSettings("PKCS12", str(file), "changeit"), PREFIX, read_file)
    assert material.certificates.count("BEGIN CERTIFICATE") == 2
    assert "PRIVATE" not in repr(material)
    trust = read_trusted_certificates(TrustStoreSettings(None, str(file), "changeit"), PREFIX, read_file)
    assert trust is not None
    assert authority().certificate_pem in trust
    with pytest.raises(StoreProblem, match="password is wrong"):
        read_key_material(KeyStoreSettings("PKCS12", str(file), "other"), PREFIX, read_file)


def test_jks_store_is_refused_with_the_command_that_converts_it(tmp_path: Path) -> None:
    file = tmp_path / "broker.jks"
    file.write_bytes(b"\xfe\xed\xfe\xed\x00\x00\x00\x02")
    with pytest.raises(StoreProblem) as problem:
        read_key_material(KeyStoreSettings("JKS", str(file)), PREFIX, read_file)
    command = f"keytool -importkeystore -srckeystore {file} -destkeystore {tmp_path}/broker.p12 -deststoretype PKCS12"
    assert command in str(problem.value)
    assert "listener.name.x.ssl.keystore.type=PKCS12" in str(problem.value)


@pytest.mark.parametrize(
    ("store", "message"),
    [
        (KeyStoreSettings(), "ssl.keystore.location is not set"),
        (KeyStoreSettings("PEM", "/nonexistent/broker.pem"), "No such file"),
        (KeyStoreSettings("ZIP", "/nonexistent/broker.pem"), "expected one of PEM, PKCS12, JKS"),
        (KeyStoreSettings("PEM", key="x"), "set it together with"),
        (KeyStoreSettings("JKS", key="x", certificate_chain="y"), "is PEM text"),
        (KeyStoreSettings("PEM", key="x", certificate_chain="y"), "found 0 keys and 0 certificates"),
    ],
)
def test_unusable_store_is_named(store: KeyStoreSettings, message: str) -> None:
    with pytest.raises(StoreProblem, match=message):
        read_key_material(store, PREFIX, read_file)


def test_key_of_another_certificate_is_refused(key_and_chain: tuple[str, str]) -> None:
    other = authority().issue("other")
    store = KeyStoreSettings("PEM", key=key_and_chain[0], certificate_chain=other[other.index("-----BEGIN CERT") :])
    with pytest.raises(StoreProblem, match="does not belong"):
        listener_context(settings(store), read_file)
