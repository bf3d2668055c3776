"""`odradek secure user`: a certificate for another user of a broker with mutual TLS."""

from __future__ import annotations

from pathlib import Path

import click

from odradek.cli.client.connection_choice import CLIENT_FILE, SERVERS, read_kafka_file
from odradek.cli.client.private_files import write_private
from odradek.cli.framework.commands import command
from odradek.cli.framework.failure import Failure
from odradek.cli.framework.options import format_option
from odradek.cli.framework.output import print_json, say
from odradek.cli.framework.parameter_types import TEXT
from odradek.cli.secure.configurations import client_properties


@command(
    "user",
    examples=[
        ("make alice.pem and alice.properties", "odradek secure user certs alice"),
        ("as alice", "odradek topic list --command-config certs/alice.properties"),
    ],
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
    try:
        from odradek.cli.secure.authority import CertificateAuthority
    except ImportError:
        raise Failure("making certificates needs `pip install 'odradek[security]'`") from None
    authority = CertificateAuthority.of((path / "ca.pem").read_text(), (path / "ca-key.pem").read_text())
    host, _, port = admin[SERVERS].rpartition(":")
    properties = path / f"{name}.properties"
    write_private(certificate, authority.issue(name))
    write_private(properties, client_properties(path, host.strip("[]"), int(port), name))
    if as_json:
        print_json({"user": f"User:{name}", "files": [certificate.name, properties.name]})
        return
    say(f"User:{name} connects with --command-config {Path(directory) / properties.name}")
