"""The texts of the configurations that `odradek secure init` writes. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

COMMON_NAME_RULE = "RULE:^CN=([^,]+).*$/$1/,DEFAULT"
AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"


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


def sasl_broker_properties(
    directory: Path, host: str, port: int, passwords: Mapping[str, str], *, broker: str, super_users: Sequence[str]
) -> str:
    """Users log in by PLAIN over TLS: these few are in the properties. Further ones are added with SCRAM."""
    users = " ".join(f'user_{name}="{password}"' for name, password in passwords.items())
    login = f'{PLAIN_MODULE} required username="{broker}" password="{passwords[broker]}" {users};'
    return _lines(
        "Of a broker with SASL over TLS: `odradek broker --secure DIR`, or the properties of an Apache Kafka broker.",
        {
            "listeners": f"SASL_SSL://{_bracketed(host)}:{port}",
            "security.inter.broker.protocol": "SASL_SSL",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
            "listener.name.sasl_ssl.plain.sasl.jaas.config": login,
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(directory / "broker.pem"),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(directory / "ca.pem"),
            "authorizer.class.name": AUTHORIZER,
            "super.users": ";".join(f"User:{name}" for name in super_users),
        },
    )


def sasl_client_properties(directory: Path, host: str, port: int, user: str, password: str) -> str:
    return _lines(
        f"Of a Java client, and of Kafka's tools and odradek (--command-config), as User:{user}.",
        {
            "bootstrap.servers": f"{_bracketed(host)}:{port}",
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": f'{PLAIN_MODULE} required username="{user}" password="{password}";',
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(directory / "ca.pem"),
        },
    )


def sasl_librdkafka_file(directory: Path, host: str, port: int, user: str, password: str) -> str:
    return _lines(
        f"Of clients on librdkafka (kcat -F, confluent-kafka), as User:{user}.",
        {
            "bootstrap.servers": f"{_bracketed(host)}:{port}",
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "PLAIN",
            "sasl.username": user,
            "sasl.password": password,
            "ssl.ca.location": str(directory / "ca.pem"),
        },
    )


def client_properties(directory: Path, host: str, port: int, user: str) -> str:
    return _lines(
        f"Of a Java client, and of Kafka's tools and odradek (--command-config), as User:{user}.",
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
