"""`odradek secure`: a CA, certificates of a broker, an admin, a client and further users, and properties that use
them."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from odradek.admin.profiles import CLIENT_FILE, SERVERS, read_kafka_file
from odradek.cli.framework.commands import group
from odradek.cli.framework.options import flag, format_option, option, repeatable
from odradek.cli.framework.output import print_result, strong
from odradek.cli.framework.parameter_types import TEXT
from odradek.conventions.client_properties import PLAIN_MODULE
from odradek.conventions.failures import Failure
from odradek.conventions.private_files import make_private_directory, write_private

if TYPE_CHECKING:
    from odradek.cli.certificate_authority import CertificateAuthority

DEFAULT_ADDRESS = "127.0.0.1:9092"
LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")
ADMIN, CLIENT, BROKER = "admin", "client", "broker"


@group(
    ("make them, and start a broker that uses them", "odradek secure init certs"),
    ("", "odradek broker --secure certs"),
    ("a client with the same flag", "odradek topic list --secure certs"),
)
def secure() -> None:
    """Make certificates and an admin user for development."""


@secure.command(
    ("for a broker on 127.0.0.1:9092", "odradek secure init certs"),
    ("then run it, and use it", "odradek broker --secure certs"),
    ("", "odradek topic create pump --secure certs"),
    ("with users and passwords instead of certificates of clients", "odradek secure init certs --sasl"),
    ("for another address, by which clients reach the broker", "odradek secure init certs --address kafka-1:9093"),
    short_help="Make a CA, certificates and client configurations.",
)
@click.argument("directory", metavar="DIR", type=click.Path(file_okay=False))
@option("--address", "HOST:PORT", TEXT, "Where the broker listens, and clients find it.", default=DEFAULT_ADDRESS)
@repeatable("--host hosts", "NAME", TEXT, "Another name or address.")
@flag("--sasl has_sasl", "Clients log in with user and password (SASL over TLS).")
@format_option
def init(directory: str, address: str, hosts: tuple[str, ...], has_sasl: bool, as_json: bool) -> None:
    """Make a CA, certificates, and configurations for brokers and clients, for development.

    Clients authenticate by their certificates (mutual TLS), or with --sasl by generated passwords: `admin` may do
    everything, `client` what it is given. `odradek secure user`, with --sasl `odradek user add`, adds further users.
    Files with keys are readable by their owner only. Do not use ca-key.pem in production: it makes certificates
    that the broker accepts.
    """
    host, colon, port = address.rpartition(":")
    host = host.strip("[]")
    if not colon or not host or not port.isdecimal():
        raise Failure(f"{address!r} is not an address; --address takes HOST:PORT")
    path = Path(directory).absolute()
    if path.exists() and any(path.iterdir()):
        raise Failure(f"{directory} is not empty; give another directory, or remove it first")
    names = list(dict.fromkeys([*LOCAL_NAMES, socket.gethostname(), host, *hosts]))
    files = _make(path, f"{f'[{host}]' if ':' in host else host}:{int(port)}", names, has_sasl=has_sasl)
    lines = [
        f"{strong(directory)} has a CA, certificates for {', '.join(names)}, and an admin, User:{ADMIN}. Next:",
        f"  odradek broker --secure {directory}",
        f"  odradek topic list --secure {directory}",
        f"Other clients: {directory}/client.properties (Java, Kafka's tools), {directory}/librdkafka.properties.",
    ]
    made = {"directory": str(path), "files": files, "host_names": names, "admin": f"User:{ADMIN}"}
    print_result(made, "\n".join(lines), as_json=as_json)


@secure.command(
    ("make alice.pem and alice.properties", "odradek secure user certs alice"),
    ("as alice", "odradek topic list --command-config certs/alice.properties"),
    short_help="Make a certificate for another user.",
)  # fmt: skip
@click.argument("directory", metavar="DIR", type=click.Path(exists=True, file_okay=False))
@click.argument("name", metavar="NAME", type=TEXT)
@format_option
def user(directory: str, name: str, as_json: bool) -> None:
    """Make a certificate for a user, and the configuration of a client that uses it.

    DIR has been made by `odradek secure init` without --sasl; a broker that runs accepts the certificate at once.
    """
    path = Path(directory).absolute()
    admin = read_kafka_file(str(path / CLIENT_FILE))
    if "sasl.mechanism" in admin:
        raise Failure(f"users of {directory} have passwords; `odradek user add {name} --secure {directory}` adds one")
    certificate = path / f"{name}.pem"
    if certificate.parent != path:
        raise Failure(f"{name} cannot be the name of a file; give another name")
    if certificate.exists():
        raise Failure(f"{certificate} exists; give another name, or remove it to make a new certificate")
    authority = _authority_class().of((path / "ca.pem").read_text(), (path / "ca-key.pem").read_text())
    properties = path / f"{name}.properties"
    write_private(certificate, authority.issue(name))
    write_private(properties, client_properties(path, admin[SERVERS], name))
    made = {"user": f"User:{name}", "files": [certificate.name, properties.name]}
    text = f"User:{name} connects with --command-config {Path(directory) / properties.name}"
    print_result(made, text, as_json=as_json)


def _authority_class() -> type[CertificateAuthority]:
    try:
        from odradek.cli.certificate_authority import CertificateAuthority
    except ImportError:
        raise Failure("making certificates needs `pip install 'odradek[security]'`") from None
    return CertificateAuthority


def _make(path: Path, address: str, names: list[str], *, has_sasl: bool) -> list[str]:
    """With SASL, users log in by PLAIN over TLS: these few are in the properties. Further ones are added with SCRAM."""
    authority = _authority_class()()
    make_private_directory(path)
    path.chmod(0o700)  # of a directory that exists
    passwords = {user: secrets.token_urlsafe(24) for user in (BROKER, ADMIN, CLIENT)} if has_sasl else {}
    texts = {
        "ca.pem": authority.certificate_pem,
        "ca-key.pem": authority.key_pem,
        f"{BROKER}.pem": authority.issue(BROKER, names),
    }
    if not has_sasl:
        texts |= {f"{user}.pem": authority.issue(user) for user in (ADMIN, CLIENT)}
    texts |= {
        "broker.properties": broker_properties(path, address, passwords),
        "client.properties": client_properties(path, address, ADMIN, passwords.get(ADMIN)),
        "librdkafka.properties": librdkafka_properties(path, address, ADMIN, passwords.get(ADMIN)),
    }
    for name, text in texts.items():
        write_private(path / name, text)
    return list(texts)


def broker_properties(path: Path, address: str, passwords: Mapping[str, str]) -> str:
    """For mutual TLS, or for SASL if there are passwords."""
    protocol = "SASL_SSL" if passwords else "SSL"
    tls = {"ssl.client.auth": "required", "ssl.principal.mapping.rules": "RULE:^CN=([^,]+).*$/$1/,DEFAULT"}
    sasl = {}
    if passwords:
        users = " ".join(f'user_{name}="{password}"' for name, password in passwords.items())
        login = f'{PLAIN_MODULE} required username="{BROKER}" password="{passwords[BROKER]}" {users};'
        sasl = {
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
            "listener.name.sasl_ssl.plain.sasl.jaas.config": login,
        }
    return _lines(
        f"Of a broker with {'SASL over' if passwords else 'mutual'} TLS: `odradek broker --secure DIR`, "
        "or the properties of an Apache Kafka broker.",
        {
            "listeners": f"{protocol}://{address}",
            "security.inter.broker.protocol": protocol,
            **sasl,
            **_store("keystore", path / f"{BROKER}.pem"),
            **_store("truststore", path / "ca.pem"),
            **({} if passwords else tls),
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": f"User:{ADMIN};User:{BROKER}",
        },
    )


def client_properties(path: Path, address: str, user: str, password: str | None = None) -> str:
    if password is None:
        identity = {"security.protocol": "SSL", **_store("keystore", path / f"{user}.pem")}
    else:
        login = f'{PLAIN_MODULE} required username="{user}" password="{password}";'
        identity = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.jaas.config": login}
    return _lines(
        f"Of a Java client, and of Kafka's tools and odradek (--command-config), as User:{user}.",
        {SERVERS: address, **identity, **_store("truststore", path / "ca.pem")},
    )


def librdkafka_properties(path: Path, address: str, user: str, password: str | None) -> str:
    properties = {SERVERS: address, "security.protocol": "SSL" if password is None else "SASL_SSL"}
    if password is not None:
        properties |= {"sasl.mechanism": "PLAIN", "sasl.username": user, "sasl.password": password}
    properties["ssl.ca.location"] = str(path / "ca.pem")
    if password is None:
        certificate = str(path / f"{user}.pem")
        properties |= {"ssl.certificate.location": certificate, "ssl.key.location": certificate}
    return _lines(f"Of clients on librdkafka (kcat -F, confluent-kafka), as User:{user}.", properties)


def _store(kind: str, file: Path) -> dict[str, str]:
    return {f"ssl.{kind}.type": "PEM", f"ssl.{kind}.location": str(file)}


def _lines(comment: str, properties: Mapping[str, str]) -> str:
    """A .properties file; backslashes would begin an escape."""
    lines = [f"{name}={value}".replace("\\", "\\\\") for name, value in properties.items()]
    return "\n".join([f"# {comment}", *lines, ""])
