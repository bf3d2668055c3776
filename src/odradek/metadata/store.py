"""Where metadata is kept. One implementation today (`embedded_store`); a cluster's will be another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.metadata.changes import Change
    from odradek.metadata.image import MetadataImage


class StoreError(Exception):
    """The store cannot be used; the text says why and what to do."""


class MetadataStore(Protocol):
    async def load(self) -> MetadataImage:
        """The newest image, without brokers: who is alive is not stored."""

    async def commit(self, changes: Sequence[Change], expected_version: int) -> bool:
        """All of the changes or none, durable once True; False when someone else has committed since that version.

        If it raises, the changes may or may not be there: load again to see.
        """

    async def close(self) -> None: ...
