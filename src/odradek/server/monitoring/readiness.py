"""Whether this broker is ready to serve clients, and the reasons if it is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from odradek.metadata.image import MetadataImage

STARTING = "the broker is starting: logs are opened and recovered"
JOINING = "the broker waits until its registration is known"
STOPPING = "the broker is stopping"


class Readiness:
    """`phase` is why the broker does not serve at all; empty while it does."""

    def __init__(self) -> None:
        self._checks: list[Callable[[], Iterable[str]]] = []
        self.phase = STARTING

    def add(self, check: Callable[[], Iterable[str]]) -> None:
        """A check returns the reasons why the broker is not ready."""
        self._checks.append(check)

    def reasons(self) -> list[str]:
        """Why the broker is not ready; none if it is."""
        if self.phase:
            return [self.phase]
        return [reason for check in self._checks for reason in check()]


def registration_problems(image: MetadataImage, node_id: int) -> list[str]:
    present = image.brokers.get(node_id)
    if present is None:
        return [f"broker {node_id} is not registered in the metadata"]
    if present.is_fenced:
        return [f"broker {node_id} is fenced: the controller gets no heartbeats from it"]
    return []
