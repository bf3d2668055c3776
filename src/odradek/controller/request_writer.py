"""A request to the controller as one write: what cannot be committed is a refusal of the whole request."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from odradek.controller.metadata_writer import ChangeNotMade, ChangeNotReadable, ControllerFenced, Decided
from odradek.metadata.store import CommitTooLarge
from odradek.protocol.errors import ErrorCode
from odradek.protocol.refusal import Refusal
from odradek.security.quotas.mutation_quota import UNLIMITED_MUTATIONS, MutationQuota

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.controller.metadata_writer import MetadataWriter
    from odradek.controller.topic_decisions import Cluster
    from odradek.metadata.changes import Change

R = TypeVar("R")
T = TypeVar("T")

DEFAULT_TIMEOUT_MS = 30_000.0  # of requests without a timeout
BROKER_REQUEST_TIMEOUT_MS = 10_000.0  # as long as a broker waits for the answer to one attempt
SHORTEST_TIMEOUT_MS = 1_000.0
LONGEST_TIMEOUT_MS = 60_000.0
MOST_WAITING_REQUESTS = 1_000


async def write_request(
    writer: MetadataWriter,
    decide: Callable[[R, Cluster], tuple[T, list[Change]]],
    request: R,
    refuse: Callable[[R, Refusal], T],
    *,
    validate_only: bool = False,
    timeout_ms: float = DEFAULT_TIMEOUT_MS,
    is_limited: bool = True,
    mutations: MutationQuota = UNLIMITED_MUTATIONS,
) -> Decided[T]:
    """A commit that is too large, that a broker cannot read, or that another controller has fenced, is a refusal.
    `StoreError` when its turn does not come within the timeout, or if too many requests wait; those of brokers are not
    limited, because each has few at a time. `mutations` is the quota that `decide` uses: a change that is not written
    does not count, and one that is decided again after a conflict counts once."""
    if is_limited and writer.waiting_count >= MOST_WAITING_REQUESTS:
        raise ChangeNotMade(f"{writer.waiting_count} changes of the metadata wait")
    limited_ms = min(max(timeout_ms, SHORTEST_TIMEOUT_MS), LONGEST_TIMEOUT_MS)

    def decide_request(cluster: Cluster) -> tuple[T, list[Change]]:
        mutations.give_back()  # what an earlier attempt has recorded
        result, changes = decide(request, cluster)
        return result, [] if validate_only else changes

    try:
        return await writer.write(decide_request, limited_ms, mutations.give_back)
    except CommitTooLarge as problem:
        refusal = Refusal(ErrorCode.POLICY_VIOLATION, str(problem))
    except ChangeNotReadable as problem:
        refusal = Refusal(problem.error, str(problem))
    except ControllerFenced as problem:
        refusal = Refusal(ErrorCode.NOT_CONTROLLER, str(problem))
    return Decided(refuse(request, refusal), writer.image.version)
