"""`odradek secure init`: a CA, certificates of a broker, an admin and a client, and the properties that use them."""

from __future__ import annotations

import secrets
import socket
from pathlib import Path

import click

from odradek.cli.framework.commands import command
from odradek.cli.framework.options import format_option
from odradek.cli.framework.output import print_json, say, strong
from odradek.cli.framework.parameter_types import TEXT
from odradek.cli.secure.configurations import (
    broker_properties,
    client_properties,
    librdkafka_file,
    sasl_broker_properties,
    sasl_client_properties,
    sasl_librdkafka_file,
)
from odradek.conventions.failures import Failure
from odradek.conventions.private_files import make_private_directory, write_private

DEFAULT_ADDRESS = "127.0.0.1:9092"
LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")
ADMIN, CLIENT, BROKER = "admin", "client", "broker"


@command(
    examples=[
        ("for a broker on 127.0.0.1:9092", "odradek secure init certs"),
        ("then run it, and use it", "odradek broker --secure certs"),
        ("", "odradek topic create pump --secure certs"),
        ("with users and passwords instead of certificates of clients", "odradek secure init certs --sasl"),
        ("for another address, by which clients reach the broker", "odradek secure init certs --address kafka-1:9093"),
    ]
)
@click.argument("directory", metavar="DIR", type=click.Path(file_okay=False))
@click.option(
    "--address",
    metavar="HOST:PORT",
    type=TEXT,
    default=DEFAULT_ADDRESS,
    show_default=True,
    help="Where the broker listens, and clients find it.",
)
@click.option("--host", "hosts", metavar="NAME", type=TEXT, multiple=True, help="Another name or address. Repeatable.")
@click.option("--sasl", "has_sasl", is_flag=True, help="Clients log in with user and password (SASL over TLS).")
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
    files = _make(path, host, int(port), names, has_sasl=has_sasl)
    if as_json:
        print_json({"directory": str(path), "files": files, "host_names": names, "admin": f"User:{ADMIN}"})
        return
    say(f"{strong(directory)} has a CA, certificates for {', '.join(names)}, and an admin, User:{ADMIN}. Next:")
    say(f"  odradek broker --secure {directory}")
    say(f"  odradek topic list --secure {directory}")
    say(f"Other clients: {directory}/client.properties (Java, Kafka's tools), {directory}/librdkafka.properties.")


def _make(path: Path, host: str, port: int, names: list[str], *, has_sasl: bool) -> list[str]:
    try:
        from odradek.cli.secure.authority import CertificateAuthority
    except ImportError:
        raise Failure("making certificates needs `pip install 'odradek[security]'`") from None
    authority = CertificateAuthority()
    make_private_directory(path)
    path.chmod(0o700)
    texts = {
        "ca.pem": authority.certificate_pem,
        "ca-key.pem": authority.key_pem,
        f"{BROKER}.pem": authority.issue(BROKER, names),
    }
    if has_sasl:
        passwords = {user: secrets.token_urlsafe(24) for user in (BROKER, ADMIN, CLIENT)}
        texts |= {
            "broker.properties": sasl_broker_properties(
                path, host, port, passwords, broker=BROKER, super_users=(ADMIN, BROKER)
            ),
            "client.properties": sasl_client_properties(path, host, port, ADMIN, passwords[ADMIN]),
            "librdkafka.properties": sasl_librdkafka_file(path, host, port, ADMIN, passwords[ADMIN]),
        }
    else:
        texts |= {
            f"{ADMIN}.pem": authority.issue(ADMIN),
            f"{CLIENT}.pem": authority.issue(CLIENT),
            "broker.properties": broker_properties(path, host, port, super_users=(ADMIN, BROKER)),
            "client.properties": client_properties(path, host, port, ADMIN),
            "librdkafka.properties": librdkafka_file(path, host, port, ADMIN),
        }
    for name, text in texts.items():
        write_private(path / name, text)
    return list(texts)
