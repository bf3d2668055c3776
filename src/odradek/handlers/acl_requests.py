"""Functions that the handlers of access control lists share: from codes on the wire to values."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Protocol, TypeVar

from odradek.handlers.context import CloseConnection
from odradek.protocol.errors import ErrorCode
from odradek.protocol.refusal import Refusal
from odradek.security.acls.bindings import AclFilter, PatternType, Permission
from odradek.security.authorizer import Operation, ResourceType

if TYPE_CHECKING:
    from odradek.handlers.context import RequestContext

Code = TypeVar("Code", bound=enum.IntEnum)


class FilterFields(Protocol):
    """The common fields of DescribeAcls requests and of the filters of DeleteAcls."""

    resource_type_filter: int
    resource_name_filter: str | None
    pattern_type_filter: int
    principal_filter: str | None
    host_filter: str | None
    operation: int
    permission_type: int


def read_filter(fields: FilterFields) -> AclFilter:
    return AclFilter(
        read_code(ResourceType, fields.resource_type_filter),
        fields.resource_name_filter,
        read_code(PatternType, fields.pattern_type_filter),
        fields.principal_filter,
        fields.host_filter,
        read_code(Operation, fields.operation),
        read_code(Permission, fields.permission_type),
    )


def read_code(kind: type[Code], code: int) -> Code:
    """UNKNOWN for a code of a later version. Like Kafka, close the connection of a client that itself sends UNKNOWN."""
    if code == 0:
        raise CloseConnection(f"the request contains the {kind.__name__} UNKNOWN")
    try:
        return kind(code)
    except ValueError:
        return kind(0)


def access_refusal(context: RequestContext, operation: Operation) -> Refusal | None:
    """Access is checked first, so that only those who may learn it learn that there is no authorizer."""
    if not context.allows_on_cluster(operation):
        return Refusal(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "The request is not authorized.")
    if not context.services.authorizer.uses_acls:
        return Refusal(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")
    return None
