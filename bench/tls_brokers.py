"""Brokers with a TLS listener beside the plain one, and the certificates for it."""

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from bench.brokers import BrokerKind, RunningBroker, free_port, running
from odradek.cli.certificate_authority import CertificateAuthority

HOSTS = ("localhost", "127.0.0.1")


@contextlib.contextmanager
def running_with_tls(kind: BrokerKind, directory: Path) -> Iterator[RunningBroker]:
    """Topics are created over the plain listener. The certificate is of the kind that `odradek secure init` makes."""
    certificates = directory.with_name(f"{directory.name}-certificates")
    certificates.mkdir(parents=True)
    authority = CertificateAuthority("Benchmark CA")
    ca, key = certificates / "ca.pem", certificates / "broker.pem"
    ca.write_text(authority.certificate_pem)
    key.write_text(authority.issue("broker", HOSTS))
    ssl_port = free_port()
    properties = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(key), "ssl.client.auth": "none"}
    with running(kind.secured(ssl_port, properties), directory) as broker:
        yield replace(broker, ssl_address=f"127.0.0.1:{ssl_port}", ca=str(ca))
