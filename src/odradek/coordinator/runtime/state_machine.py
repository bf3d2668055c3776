"""What the runtime asks of a coordinator: a state that is changed by replayed records, and by nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Hashable


class StateMachine(Protocol):
    """Its rules read the state, and write by `Shard.settle`, `Shard.write` or `Shard.write_shared`. None of its methods
    awaits anything, so no other request comes between a check and the change that rests on it."""

    def replay(self, key: bytes, value: bytes | None) -> None:
        """Take over one record. MalformedMessage when the record is not one of this coordinator's."""

    def on_load(self) -> None:
        """The log was replayed to its end, and requests follow."""

    def on_unload(self) -> None:
        """Refuse the requests that wait inside the state machine with NOT_COORDINATOR. Nothing can be written."""

    def on_timer(self, key: Hashable) -> None: ...
