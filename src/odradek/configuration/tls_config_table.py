"""The properties of TLS, with Kafka's names, types and defaults. Those of one listener begin with its prefix."""

from odradek.configuration.config_table import read_table
from odradek.configuration.config_types import Value
from odradek.security.protocols import SecurityProtocol
from odradek.security.tls.principal_mapping import InvalidRules, PrincipalMapping


def principal_mapping_rules(value: Value) -> str | None:
    try:
        PrincipalMapping(str(value))
    except InvalidRules as problem:
        return f"expected DEFAULT and RULE:pattern/replacement/[LU], separated by commas; {problem}"
    return None


def security_protocol(value: Value) -> str | None:
    names = [each.value for each in SecurityProtocol]
    return None if value in names else f"must be one of {', '.join(names)}"


TLS_CONFIGS = read_table(
    """
security.inter.broker.protocol STRING PLAINTEXT security-protocol -
    The protocol of connections between brokers, for a listener of the same name; see inter.broker.listener.name.
ssl.cipher.suites LIST "" - broker
    The cipher suites, with Java's names; by default those of OpenSSL.
ssl.client.auth STRING none {required,requested,none} broker
    Whether clients must present a certificate, may, or are not asked for one.
ssl.enabled.protocols LIST TLSv1.2,TLSv1.3 - broker
    The versions of TLS: TLSv1.2, TLSv1.3, or both.
ssl.endpoint.identification.algorithm STRING https - broker
    https: this broker checks that the certificate of another broker names its host; empty: it does not.
ssl.key.password PASSWORD - - broker
    The password of the private key, if the key is encrypted.
ssl.keystore.certificate.chain PASSWORD - - broker
    The certificate chain of this broker as PEM text, its own certificate first.
ssl.keystore.key PASSWORD - - broker
    The private key of this broker as PEM text (PKCS8).
ssl.keystore.location STRING - - broker
    The file with the private key and the certificate chain: PEM or PKCS12.
ssl.keystore.password PASSWORD - - broker
    The password of a PKCS12 store.
ssl.keystore.type STRING JKS - broker
    PEM or PKCS12; with the default the content of the file decides.
ssl.principal.mapping.rules STRING DEFAULT principal-mapping-rules -
    How the name in a client's certificate becomes the name of a principal.
ssl.truststore.certificates PASSWORD - - broker
    The trusted certificates as PEM text.
ssl.truststore.location STRING - - broker
    The file with the trusted certificates: PEM or PKCS12; by default those of the operating system are trusted.
ssl.truststore.password PASSWORD - - broker
    The password of a PKCS12 store.
ssl.truststore.type STRING JKS - broker
    PEM or PKCS12; with the default the content of the file decides.
zookeeper.ssl.client.enable BOOLEAN false - -
    Whether the connection to ZooKeeper has TLS.
zookeeper.ssl.endpoint.identification.algorithm STRING HTTPS - -
    HTTPS: the certificate of a ZooKeeper server must name its host; empty: any name is accepted.
zookeeper.ssl.keystore.location STRING - - -
    A PEM file with the private key and the certificate that this broker presents to ZooKeeper.
zookeeper.ssl.keystore.password PASSWORD - - -
    The password of the private key, if the key is encrypted.
zookeeper.ssl.keystore.type STRING - - -
    PEM.
zookeeper.ssl.truststore.location STRING - - -
    A PEM file with certificates that are trusted besides those of the operating system.
zookeeper.ssl.truststore.type STRING - - -
    PEM.
""",
    {"principal-mapping-rules": principal_mapping_rules, "security-protocol": security_protocol},
)
