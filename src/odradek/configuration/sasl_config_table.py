"""The broker properties of SASL and delegation tokens. Names, types, defaults and limits are Kafka 4.3's;
`sasl.oauthbearer.allowed.urls` is our own, with the meaning of Kafka's system property
`org.apache.kafka.sasl.oauthbearer.allowed.urls`."""

from odradek.configuration.config_table import read_table

SASL_CONFIGS = read_table(
    """
connection.failed.authentication.delay.ms INT 100 [0,] -
    How long the answer to a failed authentication is delayed; then the connection is closed.
connections.max.reauth.ms LONG 0 - -
    After how long clients of SASL listeners must authenticate again; 0 never asks them to.
delegation.token.expiry.check.interval.ms LONG 3600000 [1,] -
    How often expired delegation tokens are removed.
delegation.token.expiry.time.ms LONG 86400000 [1,] -
    After how long a delegation token expires unless it is renewed.
delegation.token.max.lifetime.ms LONG 604800000 [1,] -
    How long a delegation token can be renewed.
delegation.token.secret.key PASSWORD - - -
    The secret from which delegation tokens are made, the same on all brokers; without it there are no tokens.
sasl.enabled.mechanisms LIST GSSAPI - broker
    The mechanisms of SASL listeners: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER.
sasl.jaas.config PASSWORD - - broker
    The login module of a mechanism with its options; usually with the prefix listener.name.<listener>.<mechanism>.
sasl.mechanism.inter.broker.protocol STRING GSSAPI - broker
    The mechanism with which brokers authenticate to each other.
sasl.oauthbearer.allowed.urls LIST "" - -
    Odradek's own: the http and https addresses that sasl.oauthbearer.jwks.endpoint.url may have.
sasl.oauthbearer.clock.skew.seconds INT 30 - -
    How far the clocks of the broker and of the issuer of tokens may differ.
sasl.oauthbearer.expected.audience LIST - - -
    The audiences of which a token must name one.
sasl.oauthbearer.expected.issuer STRING - - -
    The issuer that a token must have.
sasl.oauthbearer.jwks.endpoint.refresh.ms LONG 3600000 - -
    How often the keys of the issuer are read again.
sasl.oauthbearer.jwks.endpoint.url STRING - - -
    Where the keys of the issuer are: file:///path, or an address in sasl.oauthbearer.allowed.urls.
sasl.oauthbearer.scope.claim.name STRING scope - -
    The claim of a token that has its scope.
sasl.oauthbearer.sub.claim.name STRING sub - -
    The claim of a token that names the user.
sasl.server.max.receive.size INT 524288 - -
    The largest message that is read from a client that has not authenticated.
"""
)
