"""Java's names of cipher suites, and which versions of TLS a list leaves."""

import ssl

import pytest

from odradek.security.tls.cipher_suites import UnknownCipherSuite, choose_ciphers

BOTH = ("TLSv1.2", "TLSv1.3")


def test_java_names_are_accepted_by_openssl() -> None:
    names = [
        "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
        "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
        "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
        "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256",
        "TLS_DHE_RSA_WITH_AES_256_GCM_SHA384",
        "TLS_RSA_WITH_AES_128_GCM_SHA256",
    ]
    for name in names:
        chosen = choose_ciphers([name], BOTH)
        assert chosen.protocols == ("TLSv1.2",)
        assert chosen.ciphers is not None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.set_ciphers(chosen.ciphers)
        assert chosen.ciphers in {cipher["name"] for cipher in context.get_ciphers()}


def test_list_decides_the_versions() -> None:
    newer, older = "TLS_AES_256_GCM_SHA384", "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"
    assert choose_ciphers([], BOTH) == (BOTH, None)
    assert choose_ciphers([newer], BOTH) == (("TLSv1.3",), None)
    assert choose_ciphers([newer, older], BOTH).protocols == BOTH
    with pytest.raises(UnknownCipherSuite):
        choose_ciphers([newer], ("TLSv1.2",))
    with pytest.raises(UnknownCipherSuite, match="ROT13"):
        choose_ciphers(["ROT13"], BOTH)
