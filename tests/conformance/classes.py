"""The test classes of Apache Kafka that run on Odradek, those that do not with the reason, and the known failures."""

# The shortest first, so that `make conformance` reports early.
CLASSES = [
    "kafka.server.ApiVersionsRequestTest",
    "kafka.server.DescribeGroupsRequestTest",
    "kafka.server.OffsetCommitRequestTest",
    "kafka.server.OffsetDeleteRequestTest",
    "org.apache.kafka.tools.BrokerApiVersionsCommandTest",
    "org.apache.kafka.tools.ClusterToolTest",
    "org.apache.kafka.tools.DeleteRecordsCommandTest",
    "org.apache.kafka.tools.GroupsCommandTest",
    "org.apache.kafka.tools.LogDirsCommandTest",
    "org.apache.kafka.clients.producer.ProducerCompressionTest",
    "kafka.server.JoinGroupRequestTest",
    "kafka.server.TxnOffsetCommitRequestTest",
    "org.apache.kafka.clients.TransactionsWithMaxInFlightOneTest",
    "org.apache.kafka.clients.admin.AdminFenceProducersTest",
    "org.apache.kafka.clients.admin.DescribeProducersWithBrokerIdTest",
    "org.apache.kafka.clients.producer.ProducerIntegrationTest",
    "kafka.server.DeleteGroupsRequestTest",
    "kafka.server.HeartbeatRequestTest",
    "org.apache.kafka.clients.consumer.ConsumerTopicCreationTest",
    "org.apache.kafka.tools.consumer.group.DeleteOffsetsConsumerGroupCommandIntegrationTest",
    "org.apache.kafka.tools.ConfigCommandIntegrationTest",
    "kafka.server.ListGroupsRequestTest",
    "kafka.server.ConsumerGroupHeartbeatRequestTest",
    "kafka.server.ConsumerProtocolMigrationTest",
    "org.apache.kafka.clients.consumer.ConsumerIntegrationTest",
    "org.apache.kafka.clients.consumer.PlaintextConsumerAssignTest",
    "org.apache.kafka.clients.consumer.PlaintextConsumerCloseTest",
    "org.apache.kafka.clients.consumer.PlaintextConsumerPollTest",
    "org.apache.kafka.clients.consumer.PlaintextConsumerSubscriptionTest",
    "org.apache.kafka.clients.consumer.PlaintextConsumerTest",
    "org.apache.kafka.tools.consumer.group.DeleteConsumerGroupsTest",
    "org.apache.kafka.tools.consumer.group.ListConsumerGroupTest",
]

_SHARE_GROUPS = "needs share groups"
NOT_RUN = {
    "kafka.server.ShareFetchAcknowledgeRequestTest": _SHARE_GROUPS,
    "kafka.server.ShareGroupDescribeRequestTest": _SHARE_GROUPS,
    "org.apache.kafka.clients.admin.ClientTelemetryTest": "needs client telemetry (KIP-714)",
    "org.apache.kafka.clients.consumer.ShareConsumerTest": _SHARE_GROUPS,
    "org.apache.kafka.tools.UserScramCredentialsCommandTest": "needs SCRAM",
}

# Class and test of CLASSES that fail, with the reason. The list is exact: a test that passes must be removed from it.
KNOWN_FAILURES = {
    (
        "kafka.server.ApiVersionsRequestTest",
        "testApiVersionsRequestValidationV0()[1]",
    ): "expects every API of Kafka 4.3 to be advertised",
    (
        "org.apache.kafka.tools.GroupsCommandTest",
        "testGroupCommand(ClusterInstance)[1]",
    ): "creates a share group: needs ShareGroupHeartbeat",
}
