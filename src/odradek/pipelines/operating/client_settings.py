"""Kafka client settings of definitions under librdkafka's names, certificates and keys among them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.conventions.client_properties import UntranslatableSetting, librdkafka_names

if TYPE_CHECKING:
    from collections.abc import Mapping

RENAMED = {
    "ssl.truststore.location": "ssl.ca.location",
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
}
JAVA_ONLY = frozenset({"ssl.cipher.suites", "ssl.keystore.type", "ssl.truststore.type"})
KEY_STORE, TRUST_STORE = "ssl.keystore.location", "ssl.truststore.location"


def librdkafka_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """The settings for librdkafka; names that it knows are kept. `UntranslatableSetting` for Java's own stores."""
    translated: dict[str, str] = {}
    for name, value in librdkafka_names(settings).items():
        if name == KEY_STORE:
            translated |= own_key(value, settings.get("ssl.keystore.type"))
        elif name not in JAVA_ONLY:
            translated[RENAMED.get(name, name)] = value
    if TRUST_STORE in settings and settings.get("ssl.truststore.type") != "PEM":
        raise UntranslatableSetting(f"{TRUST_STORE}: librdkafka does not read Java trust stores; use PEM files")
    return translated


def own_key(location: str, kind: str | None) -> dict[str, str]:
    """The file with the client's key and certificates: PEM, or PKCS12 with `ssl.keystore.password`."""
    if kind == "PEM":
        return {"ssl.certificate.location": location, "ssl.key.location": location}
    if kind == "PKCS12":
        return {KEY_STORE: location}
    raise UntranslatableSetting(f"{KEY_STORE}: librdkafka does not read Java key stores; use PEM or PKCS12")
