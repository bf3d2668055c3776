"""Authorization of transactional ids, and the version of a client's transactions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.security.authorizer import Operation, ResourceType

if TYPE_CHECKING:
    from odradek.handlers.context import RequestContext


def may_write(context: RequestContext, transactional_id: str) -> bool:
    return context.allows(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id)


def may_describe(context: RequestContext, transactional_id: str, *, logs: bool = True) -> bool:
    return context.allows(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, transactional_id, logs=logs)
