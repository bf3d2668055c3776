"""Client properties between Kafka's tools and Java clients (`--command-config client.properties`) and librdkafka, whose
names profiles have. Pure, apart from stores and key files that are read by the functions that are passed in."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from odradek.conventions import client_properties
from odradek.conventions.failures import Failure
from odradek.security.tls.cipher_suites import UnknownCipherSuite, choose_ciphers
from odradek.security.tls.settings import KeyStoreSettings, TrustStoreSettings
from odradek.security.tls.store_problem import StoreProblem
from odradek.security.tls.stores import DER_SEQUENCE, read_key_material, read_trusted_certificates

_RENAMED = {theirs: name for name, theirs in client_properties.RENAMED.items()}
# The names of ssl.cipher.suites are those of OpenSSL; Java's defaults apply.
_TRANSLATED = frozenset({
    "sasl.username", "sasl.password", "ssl.ca.location", "ssl.ca.pem", "ssl.certificate.location",
    "ssl.certificate.pem", "ssl.cipher.suites", "ssl.endpoint.identification.algorithm", "ssl.key.location",
    "ssl.key.pem", "ssl.keystore.location",
})  # fmt: skip
_TLS = "ssl."


def librdkafka_properties(given: Mapping[str, str], read_file: Callable[[str], bytes]) -> dict[str, str]:
    """Failure for a store or a login that cannot be used. Other properties keep their names."""
    try:
        others = {name: value for name, value in given.items() if not name.startswith(_TLS)}
        properties = client_properties.librdkafka_names(others)
        if given.get("security.protocol", "").upper() in ("SSL", "SASL_SSL"):
            properties |= _tls_properties(given, read_file)
    except (StoreProblem, UnknownCipherSuite, client_properties.UntranslatableSetting) as problem:
        raise Failure(str(problem)) from None
    return properties


def _tls_properties(given: Mapping[str, str], read_file: Callable[[str], bytes]) -> dict[str, str]:
    names = [f"ssl.truststore.{name}" for name in ("type", "location", "password", "certificates")]
    trust = TrustStoreSettings(*map(given.get, names))
    names = [f"ssl.keystore.{name}" for name in ("type", "location", "password", "key", "certificate.chain")]
    store = KeyStoreSettings(*map(given.get, [*names, "ssl.key.password"]))
    properties = {}
    trusted = read_trusted_certificates(trust, "", read_file)
    if trusted is not None:
        properties["ssl.ca.pem"] = trusted
    if store.is_set:
        properties |= _key_properties(store, read_file)
    if given.get("ssl.endpoint.identification.algorithm") == "":
        properties["ssl.endpoint.identification.algorithm"] = "none"
    suites = tuple(filter(None, given.get("ssl.cipher.suites", "").replace(" ", "").split(",")))
    ciphers = choose_ciphers(suites, ("TLSv1.2", "TLSv1.3")).ciphers
    if ciphers is not None:
        properties["ssl.cipher.suites"] = ciphers
    return properties


def _key_properties(store: KeyStoreSettings, read_file: Callable[[str], bytes]) -> dict[str, str]:
    material = read_key_material(store, "", read_file)
    if store.location and read_file(store.location)[:1] == DER_SEQUENCE:
        return {"ssl.keystore.location": store.location, "ssl.keystore.password": store.password or ""}
    if store.location:  # as a file librdkafka reads the whole chain, as text only its first certificate
        properties = {"ssl.certificate.location": store.location, "ssl.key.location": store.location}
    else:
        properties = {"ssl.certificate.pem": material.certificates, "ssl.key.pem": material.key}
    if material.key_password:
        properties["ssl.key.password"] = material.key_password
    return properties


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
    module = client_properties.PLAIN_MODULE if mechanism == "PLAIN" else client_properties.SCRAM_MODULE
    options = f'username="{_escaped(user)}" password="{_escaped(password)}"'
    return f"{module} required {options};"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
