"""Authorizers for tests."""

from odradek.security.authorizer import Client, Operation, Resource, ResourceType


class Forbids:
    """Denies every operation on the given resources and allows everything else."""

    uses_acls = False

    def __init__(self, *forbidden: tuple[ResourceType, str]) -> None:
        self._forbidden = forbidden
        self.clients: list[Client] = []

    def allows(self, client: Client, operation: Operation, resource: Resource) -> bool:
        self.clients.append(client)
        return resource not in self._forbidden

    def allows_any(self, client: Client, operation: Operation, resource_type: ResourceType) -> bool:
        return True


class AllowsOnly:
    """Allows the given operations on every resource."""

    uses_acls = False

    def __init__(self, *operations: Operation) -> None:
        self._operations = operations

    def allows(self, client: Client, operation: Operation, resource: Resource) -> bool:
        return operation in self._operations

    def allows_any(self, client: Client, operation: Operation, resource_type: ResourceType) -> bool:
        return operation in self._operations
