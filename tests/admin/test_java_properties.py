"""Properties with librdkafka's names, and the names of Java clients that they become."""

from __future__ import annotations

from odradek.admin.java_properties import java_properties, librdkafka_properties
from odradek.security.sasl_client.credentials import credentials_of_jaas


def no_file(location: str) -> str:
    raise AssertionError(f"{location} is not needed")


def test_scram_over_tls_survives_both_translations() -> None:
    jaas = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="u" password="a\\"b\\\\c";'
    given = {
        "bootstrap.servers": "kafka:9093",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": jaas,
    }
    kept = librdkafka_properties(given, lambda _: b"")
    found = java_properties(kept, no_file)
    login = credentials_of_jaas("SCRAM-SHA-512", found.pop("sasl.jaas.config"))
    assert (login.user, login.password) == ("u", 'a"b\\c')
    assert found == {name: value for name, value in given.items() if name != "sasl.jaas.config"}


def test_plain_has_its_own_login_module() -> None:
    found = java_properties({"sasl.mechanisms": "PLAIN", "sasl.username": "u", "sasl.password": "p"}, no_file)
    assert found["sasl.mechanism"] == "PLAIN"
    assert "plain.PlainLoginModule required" in found["sasl.jaas.config"]


def test_certificates_become_stores() -> None:
    texts = {"ssl.ca.pem": "CA", "ssl.certificate.pem": "CHAIN", "ssl.key.pem": "KEY"}
    assert java_properties(texts, no_file) == {
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": "CA",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": "CHAIN",
        "ssl.keystore.key": "KEY",
    }
    one_file = {"ssl.ca.location": "ca", "ssl.certificate.location": "own", "ssl.key.location": "own"}
    assert java_properties(one_file, no_file) == {
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": "ca",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": "own",
    }
    two_files = {"ssl.certificate.location": "chain", "ssl.key.location": "key"}
    found = java_properties(two_files, lambda location: location.upper())
    assert (found["ssl.keystore.certificate.chain"], found["ssl.keystore.key"]) == ("CHAIN", "KEY")
    pkcs12 = {"ssl.keystore.location": "own.p12", "ssl.keystore.password": "p"}
    assert java_properties(pkcs12, no_file) == {**pkcs12, "ssl.keystore.type": "PKCS12"}


def test_the_check_of_host_names_can_be_off() -> None:
    found = java_properties({"ssl.endpoint.identification.algorithm": "none"}, no_file)
    assert found == {"ssl.endpoint.identification.algorithm": ""}
