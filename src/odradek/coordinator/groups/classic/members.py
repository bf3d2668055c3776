"""One member of a classic group: what it brought when it joined, its assignment, and its waiting request."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from odradek.coordinator.groups.group_records import MemberMetadata

if TYPE_CHECKING:
    from collections.abc import Container

    from odradek.coordinator.runtime.decision import Waiter

# Name and metadata, in the member's order of preference.
Protocols: TypeAlias = tuple[tuple[str, bytes], ...]


PROTOCOL_BYTES = 128  # of the objects of a protocol with a short name and no metadata
BYTES_OF_CHARACTER = 4  # at most


def metadata_bytes(protocols: Protocols) -> int:
    """The memory that they take, at most."""
    return sum(PROTOCOL_BYTES + BYTES_OF_CHARACTER * len(name) + len(metadata) for name, metadata in protocols)


class ClassicMember:
    __slots__ = (
        "assignment",
        "awaiting_join",
        "awaiting_sync",
        "client_host",
        "client_id",
        "instance_id",
        "is_new",
        "member_id",
        "protocols",
        "rebalance_timeout_ms",
        "session_timeout_ms",
    )

    def __init__(
        self,
        member_id: str,
        instance_id: str | None,
        client_id: str,
        client_host: str,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        protocols: Protocols,
        assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.instance_id = instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.session_timeout_ms = session_timeout_ms
        self.protocols = protocols
        self.assignment = assignment
        self.awaiting_join: Waiter | None = None
        self.awaiting_sync: Waiter | None = None
        self.is_new = False

    @property
    def is_static(self) -> bool:
        return self.instance_id is not None

    @property
    def protocol_names(self) -> set[str]:
        return {name for name, _ in self.protocols}

    @property
    def has_satisfied_heartbeat(self) -> bool:
        """A member whose request waits here is alive; a new member counts as alive for its join timeout only."""
        return not self.is_new and (self.awaiting_join is not None or self.awaiting_sync is not None)

    def metadata(self, protocol_name: str | None) -> bytes:
        return next((metadata for name, metadata in self.protocols if name == protocol_name), b"")

    def vote(self, candidates: Container[str]) -> str | None:
        """The first of its protocols that all members support."""
        return next((name for name, _ in self.protocols if name in candidates), None)

    def stored(self, protocol_name: str, assignment: bytes) -> MemberMetadata:
        return MemberMetadata(
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            rebalance_timeout=self.rebalance_timeout_ms,
            session_timeout=self.session_timeout_ms,
            subscription=self.metadata(protocol_name),
            assignment=assignment,
        )


def restore_member(stored: MemberMetadata, protocol_name: str) -> ClassicMember:
    """Restore a member from its record, which holds only the protocol that was chosen."""
    return ClassicMember(
        stored.member_id,
        stored.group_instance_id,
        stored.client_id,
        stored.client_host,
        stored.session_timeout if stored.rebalance_timeout == -1 else stored.rebalance_timeout,
        stored.session_timeout,
        ((protocol_name, stored.subscription),),
        stored.assignment,
    )
