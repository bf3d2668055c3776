"""Names the permission that a user lacks, in place of the broker's refusal."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from odradek.admin.errors import NotAuthorized
from odradek.conventions.failures import Failure

if TYPE_CHECKING:
    from collections.abc import Iterator

CLUSTER = "the cluster"


class NotAllowed(Failure):
    """The user's access rules do not allow it; the message names the permission."""


@contextmanager
def needs(operation: str, resource: str) -> Iterator[None]:
    """Within the block, a refusal by the access rules becomes NotAllowed with the operation and the resource."""
    try:
        yield
    except NotAllowed:
        raise
    except NotAuthorized:
        raise NotAllowed(f"not allowed: needs {operation} on {resource}") from None
