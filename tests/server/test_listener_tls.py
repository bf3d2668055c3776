"""Who a client of a TLS listener is, by its certificate."""

import ssl
from collections.abc import Mapping

import pytest

from odradek.configuration.broker_configs import BrokerConfig
from odradek.host.host import real_host
from odradek.host.tls_connection import TlsResources
from odradek.security.principals import ANONYMOUS
from odradek.server.listener_tls import ListenerTls
from tests.security.tls.certificates import authority


def listener(properties: Mapping[str, str]) -> ListenerTls:
    config = BrokerConfig.from_properties({"listeners": "SSL://127.0.0.1:1", **properties})
    return ListenerTls("SSL", config, real_host(), TlsResources())


def certificate(name: str) -> bytes:
    pem = authority().issue(name)
    return ssl.PEM_cert_to_DER_cert(pem[pem.index("-----BEGIN CERT") :])


def test_principal_is_the_distinguished_name_or_what_the_rules_make_of_it() -> None:
    assert str(listener({}).principal_of(certificate("alice"))) == "User:CN=alice"
    mapped = listener({"ssl.principal.mapping.rules": "RULE:^CN=(.*)$/$1/U"})
    assert str(mapped.principal_of(certificate("alice"))) == "User:ALICE"


def test_client_without_a_certificate_is_anonymous() -> None:
    assert listener({}).principal_of(None) is ANONYMOUS


def test_certificate_that_no_rule_maps_is_refused() -> None:
    with pytest.raises(ValueError, match="no rule"):
        listener({"ssl.principal.mapping.rules": "RULE:^O=.*$/x/"}).principal_of(certificate("alice"))
