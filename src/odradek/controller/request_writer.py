"""A request to the controller as one write: what cannot be committed is a refusal of the whole request."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from odradek.controller.metadata_writer import ChangeNotReadable, ControllerFenced, Decided
from odradek.metadata.store import CommitTooLarge
from odradek.protocol.errors import ErrorCode
from odradek.protocol.refusal import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.controller.metadata_writer import MetadataWriter
    from odradek.controller.topic_decisions import Cluster
    from odradek.metadata.changes import Change

R = TypeVar("R")
T = TypeVar("T")


async def write_request(
    writer: MetadataWriter,
    decide: Callable[[R, Cluster], tuple[T, list[Change]]],
    request: R,
    refuse: Callable[[R, Refusal], T],
    *,
    validate_only: bool = False,
) -> Decided[T]:
    """A commit that is too large, that a broker cannot read, or that another controller has fenced, is a refusal."""

    def decide_request(cluster: Cluster) -> tuple[T, list[Change]]:
        result, changes = decide(request, cluster)
        return result, [] if validate_only else changes

    try:
        return await writer.write(decide_request)
    except CommitTooLarge as problem:
        refusal = Refusal(ErrorCode.POLICY_VIOLATION, str(problem))
    except ChangeNotReadable as problem:
        refusal = Refusal(problem.error, str(problem))
    except ControllerFenced as problem:
        refusal = Refusal(ErrorCode.NOT_CONTROLLER, str(problem))
    return Decided(refuse(request, refusal), writer.image.version)
