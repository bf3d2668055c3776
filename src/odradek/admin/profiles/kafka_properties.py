"""Client properties of Kafka's own tools (`--command-config client.properties`) as librdkafka names them. Pure, apart
from the stores that are read by the function that is passed in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.conventions.client_properties import UntranslatableSetting, librdkafka_names
from odradek.conventions.failures import Failure
from odradek.security.tls.cipher_suites import UnknownCipherSuite, choose_ciphers
from odradek.security.tls.settings import KeyStoreSettings, TrustStoreSettings
from odradek.security.tls.store_problem import StoreProblem
from odradek.security.tls.stores import DER_SEQUENCE, read_key_material, read_trusted_certificates

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_TLS = "ssl."


def librdkafka_properties(given: Mapping[str, str], read_file: Callable[[str], bytes]) -> dict[str, str]:
    """Failure for a store or a login that cannot be used. Other properties keep their names."""
    try:
        properties = librdkafka_names({name: value for name, value in given.items() if not name.startswith(_TLS)})
        if given.get("security.protocol", "").upper() in ("SSL", "SASL_SSL"):
            properties |= _tls_properties(given, read_file)
    except (StoreProblem, UnknownCipherSuite, UntranslatableSetting) as problem:
        raise Failure(str(problem)) from None
    return properties


def _tls_properties(given: Mapping[str, str], read_file: Callable[[str], bytes]) -> dict[str, str]:
    trust = TrustStoreSettings(
        given.get("ssl.truststore.type"),
        given.get("ssl.truststore.location"),
        given.get("ssl.truststore.password"),
        given.get("ssl.truststore.certificates"),
    )
    store = KeyStoreSettings(
        given.get("ssl.keystore.type"),
        given.get("ssl.keystore.location"),
        given.get("ssl.keystore.password"),
        given.get("ssl.keystore.key"),
        given.get("ssl.keystore.certificate.chain"),
        given.get("ssl.key.password"),
    )
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
