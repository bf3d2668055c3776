"""The texts of the configurations that `odradek secure init` writes. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

COMMON_NAME_RULE = "RULE:^CN=([^,]+).*$/$1/,DEFAULT"
AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


def broker_properties(directory: Path, host: str, port: int, *, super_users: Sequence[str]) -> str:
    return _lines(
        "Of a broker with mutual TLS: `odradek broker --secure DIR`, or the properties of an Apache Kafka broker.",
        {
            "listeners": f"SSL://{_bracketed(host)}:{port}",
            "security.inter.broker.protocol": "SSL",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(directory / "broker.pem"),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(directory / "ca.pem"),
            "ssl.client.auth": "required",
            "ssl.principal.mapping.rules": COMMON_NAME_RULE,
            "authorizer.class.name": AUTHORIZER,
            "super.users": ";".join(f"User:{name}" for name in super_users),
        },
    )


def client_properties(directory: Path, host: str, port: int, user: str) -> str:
    return _lines(
        f"Of a Java client, of Kafka's tools (--command-config), and of odradek (--secure DIR), as User:{user}.",
        {
            "bootstrap.servers": f"{_bracketed(host)}:{port}",
            "security.protocol": "SSL",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(directory / f"{user}.pem"),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(directory / "ca.pem"),
        },
    )


def librdkafka_file(directory: Path, host: str, port: int, user: str) -> str:
    return _lines(
        f"Of clients on librdkafka (kcat -F, confluent-kafka), as User:{user}.",
        {
            "bootstrap.servers": f"{_bracketed(host)}:{port}",
            "security.protocol": "SSL",
            "ssl.ca.location": str(directory / "ca.pem"),
            "ssl.certificate.location": str(directory / f"{user}.pem"),
            "ssl.key.location": str(directory / f"{user}.pem"),
        },
    )


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _lines(comment: str, properties: Mapping[str, str]) -> str:
    """A .properties file; backslashes would begin an escape."""
    lines = [f"{name}={value}".replace("\\", "\\\\") for name, value in properties.items()]
    return "\n".join([f"# {comment}", *lines, ""])
