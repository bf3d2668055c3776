"""The interface of a metadata store: the commits of the controller, in one order that every broker agrees on.

`tests/metadata/store_contract` states what every store must do; `embedded_store` is the store of a single broker.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from odradek.metadata.changes import Change
    from odradek.metadata.image import MetadataImage


class StoreError(Exception):
    """The store cannot be used; the text says why and what to do."""


class CommitTooLarge(StoreError):
    """The commit was refused before anything was written."""


class CommitOutcome(enum.Enum):
    COMMITTED = enum.auto()
    VERSION_CONFLICT = enum.auto()  # another commit has the next version: nothing was written
    FENCED = enum.auto()  # another controller has claimed a higher epoch: nothing was written


class Commit(NamedTuple):
    version: int
    controller_epoch: int
    changes: Sequence[Change]


class MetadataStore(Protocol):
    async def cluster_id(self) -> str:
        """The id of the cluster, chosen when the store is created."""

    async def load(self) -> MetadataImage:
        """The newest image."""

    async def changes_since(self, version: int) -> Sequence[Commit] | None:
        """All commits after this version, in order, without gaps; None when the store does not have all of them any
        more, so that the caller must load."""

    def watch(self, callback: Callable[[], None]) -> None:
        """Call back on the event loop whenever any controller may have committed. Spurious calls and one call
        for several commits are allowed; a commit without a later call is not."""

    async def claim_controller(self, node_id: int) -> int:
        """The next controller epoch. Commits with every lower epoch are refused from here on."""

    async def commit(self, changes: Sequence[Change], *, expected_version: int, controller_epoch: int) -> CommitOutcome:
        """Make all changes or none; durable once COMMITTED is returned. No reader sees a part of a commit, and no crash
        leaves one. `CommitTooLarge` when the changes exceed `commit_parts.MAX_COMMIT_BYTES`.

        After any other exception the commit may or may not have happened: `changes_since` answers that.
        """

    async def close(self) -> None: ...
