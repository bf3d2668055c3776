"""Client properties with librdkafka's names, as profiles keep them, under the names of Kafka's Java clients.

Pure, apart from key files that are read by the function that is passed in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.conventions.client_properties import RENAMED

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_RENAMED = {theirs: name for name, theirs in RENAMED.items()}
_LOGIN_MODULES = {"PLAIN": "plain.PlainLoginModule"}
_SCRAM_MODULE = "scram.ScramLoginModule"
_TRANSLATED = frozenset(
    [
        "sasl.username",
        "sasl.password",
        "ssl.ca.location",
        "ssl.ca.pem",
        "ssl.certificate.location",
        "ssl.certificate.pem",
        "ssl.cipher.suites",  # names of OpenSSL; Java's defaults apply
        "ssl.endpoint.identification.algorithm",
        "ssl.key.location",
        "ssl.key.pem",
        "ssl.keystore.location",
    ]
)


def java_properties(given: Mapping[str, str], read_text: Callable[[str], str]) -> dict[str, str]:
    properties = {_RENAMED.get(name, name): value for name, value in given.items() if name not in _TRANSLATED}
    properties |= _trusted(given) | _own_key(given, read_text)
    if given.get("ssl.endpoint.identification.algorithm") == "none":
        properties["ssl.endpoint.identification.algorithm"] = ""
    if "sasl.username" in given:
        mechanism = properties.get("sasl.mechanism", "")
        properties["sasl.jaas.config"] = _login(mechanism, given["sasl.username"], given.get("sasl.password", ""))
    return properties


def _trusted(given: Mapping[str, str]) -> dict[str, str]:
    if "ssl.ca.pem" in given:
        return {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": given["ssl.ca.pem"]}
    if "ssl.ca.location" in given:
        return {"ssl.truststore.type": "PEM", "ssl.truststore.location": given["ssl.ca.location"]}
    return {}


def _own_key(given: Mapping[str, str], read_text: Callable[[str], str]) -> dict[str, str]:
    if "ssl.keystore.location" in given:
        return {"ssl.keystore.type": "PKCS12", "ssl.keystore.location": given["ssl.keystore.location"]}
    location = given.get("ssl.certificate.location")
    if location is not None and location == given.get("ssl.key.location"):
        return {"ssl.keystore.type": "PEM", "ssl.keystore.location": location}
    chain = given.get("ssl.certificate.pem") or (location and read_text(location))
    key = given.get("ssl.key.pem") or ("ssl.key.location" in given and read_text(given["ssl.key.location"]))
    if not chain or not key:
        return {}
    return {"ssl.keystore.type": "PEM", "ssl.keystore.certificate.chain": chain, "ssl.keystore.key": key}


def _login(mechanism: str, user: str, password: str) -> str:
    module = _LOGIN_MODULES.get(mechanism, _SCRAM_MODULE)
    options = f'username="{_escaped(user)}" password="{_escaped(password)}"'
    return f"org.apache.kafka.common.security.{module} required {options};"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
