"""The authorization seam: Kafka's codes, and the bit field that clients read."""

from odradek.security.authorizer import AllowAll, Operation, ResourceType, authorized_operations
from odradek.security.principals import ANONYMOUS, Principal


class AllowOnly:
    def __init__(self, *operations: Operation) -> None:
        self.operations = operations

    def allows(
        self, principal: Principal, operation: Operation, resource_type: ResourceType, resource_name: str
    ) -> bool:
        return operation in self.operations


def test_allow_all_allows_everything() -> None:
    assert all(
        AllowAll().allows(ANONYMOUS, operation, resource_type, "x")
        for operation in Operation
        for resource_type in ResourceType
    )


def test_bit_field_has_the_bits_that_kafka_gives_without_an_authorizer() -> None:
    # What a Kafka 4.3 broker without an authorizer answers in Metadata, DescribeCluster and DescribeGroups.
    assert authorized_operations(AllowAll(), ANONYMOUS, ResourceType.TOPIC, "t") == 0b1101_1111_1000
    assert authorized_operations(AllowAll(), ANONYMOUS, ResourceType.CLUSTER, "kafka-cluster") == 0b1_1111_1010_0000
    assert authorized_operations(AllowAll(), ANONYMOUS, ResourceType.GROUP, "g") == 0b1101_0100_1000


def test_bit_field_leaves_out_what_is_not_allowed_or_makes_no_sense() -> None:
    only = AllowOnly(Operation.READ, Operation.IDEMPOTENT_WRITE)
    assert authorized_operations(only, ANONYMOUS, ResourceType.TOPIC, "t") == 1 << Operation.READ
    assert authorized_operations(AllowAll(), ANONYMOUS, ResourceType.ANY, "t") == 0


def test_operations_and_resources_have_kafkas_codes() -> None:
    assert " ".join(operation.name for operation in sorted(Operation)) == (
        "UNKNOWN ANY ALL READ WRITE CREATE DELETE ALTER DESCRIBE CLUSTER_ACTION DESCRIBE_CONFIGS ALTER_CONFIGS "
        "IDEMPOTENT_WRITE CREATE_TOKENS DESCRIBE_TOKENS TWO_PHASE_COMMIT"
    )
    assert " ".join(resource.name for resource in sorted(ResourceType)) == (
        "UNKNOWN ANY TOPIC GROUP CLUSTER TRANSACTIONAL_ID DELEGATION_TOKEN USER"
    )
