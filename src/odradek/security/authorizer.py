"""The interface through which handlers ask whether a client may perform an operation on a resource.
The enumerations carry Kafka's codes."""

import enum
from typing import NamedTuple, Protocol

from odradek.security.principals import Principal


class ResourceType(enum.IntEnum):
    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class Operation(enum.IntEnum):
    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


# Which operations make sense for which resource, as Kafka's AclEntry has it.
SUPPORTED_OPERATIONS: dict[ResourceType, tuple[Operation, ...]] = {
    ResourceType.TOPIC: (
        Operation.READ,
        Operation.WRITE,
        Operation.CREATE,
        Operation.DESCRIBE,
        Operation.DELETE,
        Operation.ALTER,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (
        Operation.READ,
        Operation.DESCRIBE,
        Operation.DELETE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.CLUSTER: (
        Operation.CREATE,
        Operation.CLUSTER_ACTION,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
        Operation.IDEMPOTENT_WRITE,
        Operation.ALTER,
        Operation.DESCRIBE,
    ),
    ResourceType.TRANSACTIONAL_ID: (Operation.DESCRIBE, Operation.WRITE, Operation.TWO_PHASE_COMMIT),
    ResourceType.DELEGATION_TOKEN: (Operation.DESCRIBE,),
    ResourceType.USER: (Operation.CREATE_TOKENS, Operation.DESCRIBE_TOKENS),
}


CLUSTER_NAME = "kafka-cluster"  # the name of the one cluster resource


class Resource(NamedTuple):
    type: ResourceType
    name: str


class Client(Protocol):
    """The peer of a connection: access may depend on who it is, on its address, and on the listener it came through."""

    @property
    def principal(self) -> Principal: ...

    @property
    def host(self) -> str: ...

    @property
    def listener_name(self) -> str: ...


class Authorizer(Protocol):
    uses_acls: bool
    """Whether access control lists decide, so that they can be listed and changed."""

    def allows(self, client: Client, operation: Operation, resource: Resource) -> bool: ...

    def allows_any(self, client: Client, operation: Operation, resource_type: ResourceType) -> bool:
        """Whether there can be a resource of the type on which the client may perform the operation."""


class AllowAll:
    """A broker without access control lists, as Apache Kafka without an authorizer."""

    uses_acls = False

    def allows_any(
        self,
        client: Client,  # noqa: ARG002 - the interface's signature
        operation: Operation,  # noqa: ARG002
        resource_type: ResourceType,  # noqa: ARG002
    ) -> bool:
        return True

    def allows(
        self,
        client: Client,  # noqa: ARG002
        operation: Operation,  # noqa: ARG002
        resource: Resource,  # noqa: ARG002
    ) -> bool:
        return True


def authorized_operations(authorizer: Authorizer, client: Client, resource: Resource) -> int:
    """The bit field of Metadata, DescribeCluster and DescribeGroups: bit n is set when operation n is allowed."""
    bits = 0
    for operation in SUPPORTED_OPERATIONS.get(resource.type, ()):
        if authorizer.allows(client, operation, resource):
            bits |= 1 << operation
    return bits
