"""Apache Kafka's test classes of authentication, authorization, quotas and tokens that this harness does not run.

The harness gives a test external brokers with a listener in plain text or with SASL (PLAIN). Classes that start their
brokers themselves, in their own JVM, would need brokers that look like Kafka's objects.
"""

_BROKERS_IN_THE_JVM = "starts its brokers in its own JVM (QuorumTestHarness)"
_GSSAPI = f"needs GSSAPI (Kerberos); {_BROKERS_IN_THE_JVM}"
_LOADED_CLASS = "loads a class of its own into the broker"
_METRICS = f"reads metrics of the broker's JVM; {_BROKERS_IN_THE_JVM}"
_AUTHORIZER = f"calls the authorizer in the broker's JVM; {_BROKERS_IN_THE_JVM}"
_NO_BROKER = "runs without a broker"

SECURED_NOT_RUN = {
    "kafka.api.AuthorizerIntegrationTest": f"{_LOADED_CLASS} (a principal builder)",
    "kafka.api.ClientIdQuotaTest": _METRICS,
    "kafka.api.CustomQuotaCallbackTest": f"{_LOADED_CLASS} (a quota callback)",
    "kafka.api.DelegationTokenEndToEndAuthorizationTest": _AUTHORIZER,
    "kafka.api.DelegationTokenEndToEndAuthorizationWithOwnerTest": _AUTHORIZER,
    "kafka.api.GroupEndToEndAuthorizationTest": f"{_LOADED_CLASS} (a principal builder)",
    "kafka.api.PlaintextEndToEndAuthorizationTest": f"{_LOADED_CLASS} (a principal builder)",
    "kafka.api.SaslClientsWithInvalidCredentialsTest": _BROKERS_IN_THE_JVM,
    "kafka.api.SaslGssapiSslEndToEndAuthorizationTest": _GSSAPI,
    "kafka.api.SaslMultiMechanismConsumerTest": _GSSAPI,
    "kafka.api.SaslOAuthBearerSslEndToEndAuthorizationTest": f"needs tokens without a signature; {_AUTHORIZER}",
    "kafka.api.SaslPlainSslEndToEndAuthorizationTest": f"{_LOADED_CLASS} (a callback handler)",
    "kafka.api.SaslPlaintextConsumerTest": _GSSAPI,
    "kafka.api.SaslScramSslEndToEndAuthorizationTest": _AUTHORIZER,
    "kafka.api.SaslSslAdminIntegrationTest": _GSSAPI,
    "kafka.api.SaslSslConsumerTest": _GSSAPI,
    "kafka.api.SslAdminIntegrationTest": f"{_LOADED_CLASS} (an authorizer)",
    "kafka.api.SslConsumerTest": _BROKERS_IN_THE_JVM,
    "kafka.api.SslEndToEndAuthorizationTest": f"{_LOADED_CLASS} (a principal builder)",
    "kafka.api.SslProducerSendTest": _BROKERS_IN_THE_JVM,
    "kafka.api.UserClientIdQuotaTest": _METRICS,
    "kafka.api.UserQuotaTest": _GSSAPI,
    "kafka.network.DynamicConnectionQuotaTest": _BROKERS_IN_THE_JVM,
    "kafka.server.AlterUserScramCredentialsRequestNotAuthorizedTest": f"{_LOADED_CLASS} (a principal builder)",
    "kafka.server.AlterUserScramCredentialsRequestTest": f"{_LOADED_CLASS} (a principal builder)",
    "kafka.server.DelegationTokenRequestsOnPlainTextTest": _BROKERS_IN_THE_JVM,
    "kafka.server.DelegationTokenRequestsTest": _BROKERS_IN_THE_JVM,
    "kafka.server.DelegationTokenRequestsWithDisableTokenFeatureTest": _BROKERS_IN_THE_JVM,
    "kafka.server.DescribeUserScramCredentialsRequestNotAuthorizedTest": f"{_LOADED_CLASS} (a principal builder)",
    "kafka.server.DescribeUserScramCredentialsRequestTest": f"{_LOADED_CLASS} (a principal builder)",
    "kafka.server.GssapiAuthenticationTest": _GSSAPI,
    "kafka.server.PermissiveControllerMutationQuotaTest": f"{_LOADED_CLASS} (a principal builder)",
    "kafka.server.ReplicationQuotasTest": _METRICS,
    "kafka.server.RequestQuotaTest": f"{_LOADED_CLASS} (an authorizer)",
    "kafka.server.StrictControllerMutationQuotaTest": f"{_LOADED_CLASS} (a principal builder)",
    "org.apache.kafka.clients.security.GroupAuthorizerIntegrationTest": f"{_LOADED_CLASS} (a principal builder)",
    "org.apache.kafka.server.quota.CustomQuotaCallbackTest": f"{_LOADED_CLASS} (a quota callback)",
    "org.apache.kafka.tools.DelegationTokenCommandTest": _NO_BROKER,
    "org.apache.kafka.tools.ResetIntegrationWithSslTest": "starts its brokers in its own JVM (Kafka Streams)",
    "org.apache.kafka.tools.consumer.group.AuthorizerIntegrationTest": f"{_LOADED_CLASS} (a principal builder)",
    "org.apache.kafka.tools.consumer.group.SaslClientsWithInvalidCredentialsTest": _BROKERS_IN_THE_JVM,
}
