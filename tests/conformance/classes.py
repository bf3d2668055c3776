"""The test classes of Apache Kafka that run on Odradek, those that do not with the reason, and the known failures."""

# The shortest first, so that `make conformance` reports early.
CLASSES = [
    "kafka.server.ApiVersionsRequestTest",
    "kafka.server.DescribeGroupsRequestTest",
    "kafka.server.OffsetCommitRequestTest",
    "kafka.server.OffsetDeleteRequestTest",
    "kafka.server.SaslApiVersionsRequestTest",
    "org.apache.kafka.clients.admin.DescribeAuthorizedOperationsTest",
    "org.apache.kafka.tools.AclCommandTest",
    "org.apache.kafka.tools.BrokerApiVersionsCommandTest",
    "org.apache.kafka.tools.ClusterToolTest",
    "org.apache.kafka.tools.DeleteRecordsCommandTest",
    "org.apache.kafka.tools.GroupsCommandTest",
    "org.apache.kafka.tools.LogDirsCommandTest",
    "org.apache.kafka.tools.UserScramCredentialsCommandTest",
    "org.apache.kafka.clients.producer.ProducerCompressionTest",
    "kafka.server.JoinGroupRequestTest",
    "kafka.server.TxnOffsetCommitRequestTest",
    "org.apache.kafka.clients.TransactionsWithMaxInFlightOneTest",
    "org.apache.kafka.clients.admin.AdminFenceProducersTest",
    "org.apache.kafka.clients.admin.ClientTelemetryTest",
    "org.apache.kafka.clients.admin.DescribeProducersWithBrokerIdTest",
    "org.apache.kafka.clients.producer.ProducerIntegrationTest",
    "kafka.server.DeleteGroupsRequestTest",
    "kafka.server.HeartbeatRequestTest",
    "org.apache.kafka.clients.consumer.ConsumerTopicCreationTest",
    "org.apache.kafka.tools.consumer.group.DeleteOffsetsConsumerGroupCommandIntegrationTest",
    "org.apache.kafka.tools.ConfigCommandIntegrationTest",
    "org.apache.kafka.server.quota.ClientQuotasRequestTest",
    "kafka.server.ListGroupsRequestTest",
    "kafka.server.ConsumerGroupHeartbeatRequestTest",
    "kafka.server.ConsumerProtocolMigrationTest",
    "org.apache.kafka.clients.consumer.ConsumerIntegrationTest",
    "org.apache.kafka.clients.consumer.SaslPlainPlaintextConsumerTest",
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
    "org.apache.kafka.clients.consumer.ShareConsumerTest": _SHARE_GROUPS,
}

_EVERY_API = "expects every API of Kafka 4.3 to be advertised"
# Class and test of CLASSES that fail, with the reason. The list is exact: a test that passes must be removed from it.
KNOWN_FAILURES = {
    (
        "kafka.server.ApiVersionsRequestTest",
        "testApiVersionsRequestValidationV0()[1]",
    ): _EVERY_API,
    (
        "kafka.server.SaslApiVersionsRequestTest",
        "testApiVersionsRequestBeforeSaslHandshakeRequest()[1]",
    ): _EVERY_API,
    (
        "kafka.server.SaslApiVersionsRequestTest",
        "testApiVersionsRequestWithUnsupportedVersion()[1]",
    ): _EVERY_API,
    (
        "org.apache.kafka.tools.GroupsCommandTest",
        "testGroupCommand(ClusterInstance)[1]",
    ): "creates a share group: needs ShareGroupHeartbeat",
}

# Classes whose tests ask for several brokers, in the order in which they run: short ones first.
CLUSTER_CLASSES = [
    "org.apache.kafka.clients.admin.ConcurrentListOffsetsRequestTest",
    "org.apache.kafka.clients.admin.RackAwareAutoTopicCreationTest",
    "org.apache.kafka.clients.admin.AutoTopicCreationTest",
    "org.apache.kafka.clients.admin.DescribeProducersWithBrokerIdTest",
    "org.apache.kafka.clients.ClientRebootstrapTest",
    "org.apache.kafka.tools.LogDirsCommandTest",
    "org.apache.kafka.tools.ClusterToolTest",
    "org.apache.kafka.tools.LeaderElectionCommandTest",
    "org.apache.kafka.clients.admin.ListOffsetsIntegrationTest",
    "org.apache.kafka.server.MetadataRequestTest",
    "org.apache.kafka.tools.reassign.ReassignPartitionsCommandTest",
    "org.apache.kafka.clients.admin.DeleteTopicTest",
    "org.apache.kafka.clients.producer.ProducerIdExpirationTest",
    "org.apache.kafka.clients.producer.ProducerSendWhileDeletionTest",
    "org.apache.kafka.tools.consumer.ConsoleConsumerTest",
    "org.apache.kafka.server.EligibleLeaderReplicasIntegrationTest",
    "org.apache.kafka.server.UncleanLeaderElectionTest",
    "org.apache.kafka.clients.consumer.PlaintextConsumerFetchTest",
    "org.apache.kafka.tools.TopicCommandTest",
    "org.apache.kafka.clients.producer.ProducerFailureHandlingTest",
    "org.apache.kafka.clients.consumer.PlaintextConsumerCallbackTest",
    "org.apache.kafka.clients.consumer.PlaintextConsumerCommitTest",
    "org.apache.kafka.tools.consumer.group.ResetConsumerGroupOffsetTest",
    "org.apache.kafka.tools.consumer.group.DescribeConsumerGroupTest",
]

CLUSTER_NOT_RUN: dict[str, str] = {}

_NOT_RECORDED = "the outcome on Apache Kafka is not recorded"
CLUSTER_NOT_RECORDED = {
    "org.apache.kafka.clients.TransactionsExpirationTest": (
        "no test passes on Apache Kafka here: consumers read nothing for 15 s; three of four pass on Odradek"
    ),
    "org.apache.kafka.clients.consumer.ConsumerBounceTest": (
        f"{_NOT_RECORDED}; 11 of 13 pass on Odradek, the others read inside the broker's JVM"
    ),
    "org.apache.kafka.clients.consumer.ConsumerIntegrationTest": (
        "Apache Kafka passes four of 14 here, one of them with group.version 0, which cannot be chosen in Odradek"
    ),
    "org.apache.kafka.server.LogManagerIntegrationTest": "reads inside the broker's JVM",
}

_CONTROLLER_PROPERTIES = "gives properties to a controller that is not a broker"
_CREATED_AT_ONCE = "expects an error for a topic that is being created; it is in the response here"
_METER = "reads a meter inside the JVM of the controller"
# Of CLUSTER_KNOWN_FAILURES: whether it fails depends on how busy the machine is.
DECIDED_BY_TIME = {
    (
        "org.apache.kafka.clients.producer.ProducerFailureHandlingTest",
        "testCannotSendToInternalTopic(ClusterInstance)[1]",
    )
}
# Class and test of CLUSTER_CLASSES that fail, with the reason. The list is exact, as KNOWN_FAILURES.
CLUSTER_KNOWN_FAILURES = {
    (
        "org.apache.kafka.clients.producer.ProducerFailureHandlingTest",
        "testCannotSendToInternalTopic(ClusterInstance)[1]",
    ): "waits for the deletion of a topic that it has just created, and passes only while the topic is not listed",
    (
        "org.apache.kafka.clients.admin.AutoTopicCreationTest",
        "testAutoCreateTopicWithImplicitBrokerConfig(ClusterInstance)[1]",
    ): _CONTROLLER_PROPERTIES,
    (
        "org.apache.kafka.clients.admin.AutoTopicCreationTest",
        "testAutoCreateTopicWithMixedConfig(ClusterInstance)[1]",
    ): _CONTROLLER_PROPERTIES,
    (
        "org.apache.kafka.server.MetadataRequestTest",
        "testAutoTopicCreation()[1]",
    ): _CREATED_AT_ONCE,
    (
        "org.apache.kafka.server.MetadataRequestTest",
        "testAutoCreateTopicWithInvalidReplicationFactor()[1]",
    ): _CREATED_AT_ONCE,
    (
        "org.apache.kafka.server.UncleanLeaderElectionTest",
        "testUncleanLeaderElectionEnabledByTopicOverrideClassic()[1]",
    ): _METER,
    (
        "org.apache.kafka.server.UncleanLeaderElectionTest",
        "testUncleanLeaderElectionEnabledByTopicOverrideConsumer()[1]",
    ): _METER,
    (
        "org.apache.kafka.server.UncleanLeaderElectionTest",
        "testUncleanLeaderElectionEnabledClassic()[1]",
    ): _METER,
    (
        "org.apache.kafka.server.UncleanLeaderElectionTest",
        "testUncleanLeaderElectionEnabledConsumer()[1]",
    ): _METER,
}
