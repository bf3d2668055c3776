"""A client whose TLS or SASL does not fit the listener is told at once what is wrong, and what to do."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

import pytest

from odradek.cli.certificate_authority import CertificateAuthority
from odradek.testing import broker
from tests.commands import run_odradek

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LISTENERS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
USER = ("sasl.mechanisms=PLAIN", "sasl.username=alice", "sasl.password=alice secret")
SCRAM_USER = ("sasl.mechanisms=SCRAM-SHA-256", *USER[1:])
JAAS = "org.apache.kafka.common.security.plain.PlainLoginModule"
NOT_AT_ONCE_S = 8.0  # on a loaded machine; the client library would wait for 10 to 45 s


class Listeners(NamedTuple):
    ports: dict[str, int]
    files: Path

    def ask(self, listener: str, command: str, *properties: str) -> str:
        """The error of a command; `ca` and `own` stand for certificates."""
        files = {
            "ca": (f"ssl.ca.location={self.files}/ca.pem",),
            "own": (f"ssl.certificate.location={self.files}/alice.pem", f"ssl.key.location={self.files}/alice.pem"),
        }
        given = [option for each in properties for option in files.get(each, (each,))]
        options = [word for each in given for word in ("-X", each)]
        began_s = time.monotonic()
        ran = run_odradek(*command.split(), "-b", f"127.0.0.1:{self.ports[listener]}", *options, stdin="x\n")
        assert time.monotonic() - began_s < NOT_AT_ONCE_S
        if ran.code:
            assert ran.errors.startswith("odradek: error: ")
            assert ran.errors.count("\n") == 1
        return ran.errors


@pytest.fixture(scope="module")
def listeners(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Listeners]:
    files = tmp_path_factory.mktemp("files")
    authority = CertificateAuthority()
    (files / "ca.pem").write_text(authority.certificate_pem)
    (files / "broker.pem").write_text(authority.issue("broker", ["127.0.0.1"]))
    (files / "alice.pem").write_text(authority.issue("alice"))
    properties = {
        "listeners": ",".join(f"{each}://127.0.0.1:0" for each in LISTENERS),
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
        "connection.failed.authentication.delay.ms": "10",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(files / "broker.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(files / "ca.pem"),
        "listener.name.ssl.ssl.client.auth": "required",
        **{
            f"listener.name.{each}.plain.sasl.jaas.config": f'{JAAS} required user_alice="alice secret";'
            for each in ("sasl_plaintext", "sasl_ssl")
        },
    }
    with broker(properties) as process:
        yield Listeners(process.ports, files)


@pytest.mark.parametrize("command", ["topic list", "produce t", "cluster status", "user list"])
def test_a_wrong_password(listeners: Listeners, command: str) -> None:
    """With the client library and without."""
    given = ("security.protocol=SASL_PLAINTEXT", *USER[:2], "sasl.password=wrong")
    line = listeners.ask("SASL_PLAINTEXT", command, *given)
    assert "the broker refused the credentials of alice" in line
    assert "check user, password and mechanism (PLAIN)" in line


@pytest.mark.parametrize("command", ["topic list", "cluster status"])
@pytest.mark.parametrize(
    ("listener", "given"),
    [
        ("SASL_SSL", ("SASL_PLAINTEXT", *USER)),
        ("SASL_SSL", ("SSL", "ca")),
        ("SASL_SSL", ("PLAINTEXT",)),
        ("SASL_PLAINTEXT", ("PLAINTEXT",)),
        ("SASL_PLAINTEXT", ("SASL_SSL", "ca", *USER)),
        ("PLAINTEXT", ("SASL_PLAINTEXT", *USER)),
        ("PLAINTEXT", ("SSL", "ca")),
        ("PLAINTEXT", ("SASL_SSL", "ca", *USER)),
        ("SSL", ("PLAINTEXT",)),
        ("SSL", ("SASL_SSL", "ca", "own", *USER)),
    ],
)
def test_another_protocol(listeners: Listeners, listener: str, given: tuple[str, ...], command: str) -> None:
    protocol, *others = given
    line = listeners.ask(listener, command, f"security.protocol={protocol}", *others)
    assert f"speaks {listener}, and this client {protocol}; give -X security.protocol={listener}" in line
    assert ("ssl.ca.location=FILE" in line) == (listener.endswith("SSL") and not protocol.endswith("SSL"))
    assert ("a user for PLAIN or SCRAM-SHA-512" in line) == ("SASL" in listener and "SASL" not in protocol)


@pytest.mark.parametrize("command", ["topic list", "cluster status"])
def test_certificates(listeners: Listeners, command: str) -> None:
    """Of an authority that is not given, and none of the client's own."""
    sasl = ("security.protocol=SASL_SSL", *USER)
    assert "is not trusted" in (line := listeners.ask("SASL_SSL", command, *sasl))
    assert "ssl.ca.location=FILE" in line
    line = listeners.ask("SSL", command, "security.protocol=SSL", "ca")
    assert "does not accept this client's certificate" in line
    assert "ssl.certificate.location=FILE" in line


@pytest.mark.parametrize("command", ["topic list", "cluster status"])
def test_another_mechanism(listeners: Listeners, command: str) -> None:
    line = listeners.ask("SASL_PLAINTEXT", command, "security.protocol=SASL_PLAINTEXT", *SCRAM_USER)
    assert "the broker does not accept SCRAM-SHA-256; give one of its mechanisms" in line
    assert "PLAIN, SCRAM-SHA-512" in line


@pytest.mark.parametrize("command", ["topic list", "cluster status"])
def test_a_file_that_does_not_exist(listeners: Listeners, command: str) -> None:
    """The broker is not the one to start."""
    line = listeners.ask("SASL_SSL", command, "security.protocol=SASL_SSL", "ssl.ca.location=/none.pem", *USER)
    assert line == "odradek: error: ssl.ca.location=/none.pem: No such file or directory\n"


@pytest.mark.parametrize("command", [("run",), ("run", "--engine", "batch"), ("preview",), ("backfill",)])
@pytest.mark.parametrize(
    ("protocol", "password", "reason"),
    [
        ("SASL_PLAINTEXT", "wrong", "the broker refused the credentials of alice"),
        ("SASL_SSL", "alice secret", "speaks SASL_PLAINTEXT, and this client SASL_SSL; give security.protocol="),
    ],
)
def test_a_pipeline(
    listeners: Listeners, tmp_path: Path, command: tuple[str, ...], protocol: str, password: str, reason: str
) -> None:
    """It is not left to the Kafka clients of Spark, which report no reason."""
    file = tmp_path / "p.yml"
    file.write_text(f"""
pipeline: p
bootstrap_servers: 127.0.0.1:{listeners.ports["SASL_PLAINTEXT"]}
kafka:
  security.protocol: {protocol}
  sasl.mechanism: PLAIN
  sasl.jaas.config: {JAAS} required username="alice" password="{password}";
  ssl.truststore.type: PEM
  ssl.truststore.location: {listeners.files}/ca.pem
sources: {{a: {{topic: a, schema: "id INT"}}}}
sinks: {{b: {{from: a, topic: b}}}}
""")
    action, *options = command
    more = {"preview": ["a"], "backfill": ["--from", "earliest"]}.get(action, [])
    began_s = time.monotonic()
    ran = run_odradek("pipeline", action, str(file), *more, *options)
    assert time.monotonic() - began_s < NOT_AT_ONCE_S
    assert (ran.code, ran.output) == (1, "")
    assert reason in ran.errors
    assert "-X " not in ran.errors
    assert "no broker answers" not in ran.errors


def test_what_fits_is_accepted(listeners: Listeners) -> None:
    assert listeners.ask("SASL_SSL", "topic list", "security.protocol=SASL_SSL", "ca", *USER) == ""
    assert listeners.ask("SSL", "topic list", "security.protocol=SSL", "ca", "own") == ""
