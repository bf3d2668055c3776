"""The input and output of the broker's assignors (KIP-848): subscriptions and present targets, and new targets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeAlias
from uuid import UUID

Partitions: TypeAlias = Mapping[UUID, frozenset[int]]
Assignment: TypeAlias = dict[str, dict[UUID, frozenset[int]]]


class MemberSubscription(NamedTuple):
    topic_ids: frozenset[UUID]
    assigned: Partitions  # its present target
    instance_id: str | None


# Members by id and the number of partitions by topic; every member is in the answer, topics that are gone are not.
Assignor: TypeAlias = Callable[[Mapping[str, MemberSubscription], Mapping[UUID, int]], Assignment]
