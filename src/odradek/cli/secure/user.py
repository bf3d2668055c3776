"""`odradek secure user`: a certificate for another user of a broker with mutual TLS."""

from __future__ import annotations

from pathlib import Path

import click

from odradek.admin.profiles import CLIENT_FILE, SERVERS, read_kafka_file
from odradek.cli.framework.commands import command
from odradek.cli.framework.options import format_option
from odradek.cli.framework.output import print_json, say
from odradek.cli.framework.parameter_types import TEXT
from odradek.cli.secure.configurations import client_properties
from odradek.conventions.failures import Failure
from odradek.conventions.private_files import write_private


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
    if certificate.parent != path or certificate.exists():
        raise Failure(f"{certificate} exists or is not in {directory}; give another name")
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
