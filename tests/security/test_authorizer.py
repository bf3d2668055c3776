"""The authorization interface: Kafka's codes, and the bit field that clients read."""

from odradek.handlers.context import ClientConnection
from odradek.security.authorizer import AllowAll, Operation, Resource, ResourceType, authorized_operations
from tests.security.authorizers import AllowsOnly

CLIENT = ClientConnection("PLAINTEXT", "127.0.0.1")


def test_allow_all_allows_everything() -> None:
    assert all(
        AllowAll().allows(CLIENT, operation, Resource(resource_type, "x"))
        for operation in Operation
        for resource_type in ResourceType
    )


def test_bit_field_has_the_bits_that_kafka_gives_without_an_authorizer() -> None:
    # What a Kafka 4.3 broker without an authorizer answers in Metadata, DescribeCluster and DescribeGroups.
    assert authorized_operations(AllowAll(), CLIENT, Resource(ResourceType.TOPIC, "t")) == 0b1101_1111_1000
    assert (
        authorized_operations(AllowAll(), CLIENT, Resource(ResourceType.CLUSTER, "kafka-cluster")) == 0b1_1111_1010_0000
    )
    assert authorized_operations(AllowAll(), CLIENT, Resource(ResourceType.GROUP, "g")) == 0b1101_0100_1000


def test_bit_field_leaves_out_what_is_not_allowed_or_makes_no_sense() -> None:
    only = AllowsOnly(Operation.READ, Operation.IDEMPOTENT_WRITE)
    assert authorized_operations(only, CLIENT, Resource(ResourceType.TOPIC, "t")) == 1 << Operation.READ
    assert authorized_operations(AllowAll(), CLIENT, Resource(ResourceType.ANY, "t")) == 0


def test_operations_and_resources_have_kafkas_codes() -> None:
    assert " ".join(operation.name for operation in sorted(Operation)) == (
        "UNKNOWN ANY ALL READ WRITE CREATE DELETE ALTER DESCRIBE CLUSTER_ACTION DESCRIBE_CONFIGS ALTER_CONFIGS "
        "IDEMPOTENT_WRITE CREATE_TOKENS DESCRIBE_TOKENS TWO_PHASE_COMMIT"
    )
    assert " ".join(resource.name for resource in sorted(ResourceType)) == (
        "UNKNOWN ANY TOPIC GROUP CLUSTER TRANSACTIONAL_ID DELEGATION_TOKEN USER"
    )
