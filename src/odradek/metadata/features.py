"""The features of the whole cluster that have levels, by Kafka's names (KIP-584). Pure.

A feature with one behaviour supports one level. Features of Kafka that are missing here are not supported: share and
streams groups, and the KRaft quorum.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


class FeatureLevels(NamedTuple):
    """The levels that this version supports."""

    smallest: int
    largest: int

    @property
    def default_level(self) -> int:
        """The level of a cluster whose metadata does not state one."""
        return self.largest

    def __str__(self) -> str:
        return str(self.largest) if self.smallest == self.largest else f"{self.smallest}-{self.largest}"


ELIGIBLE_LEADER_REPLICAS = "eligible.leader.replicas.version"
SUPPORTED_FEATURES: Mapping[str, FeatureLevels] = {
    ELIGIBLE_LEADER_REPLICAS: FeatureLevels(0, 1),  # KIP-966; 0: the last in-sync replica stays in the in-sync set
    "group.version": FeatureLevels(1, 1),  # consumer groups of KIP-848
    "metadata.version": FeatureLevels(30, 30),  # Kafka 4.3: the APIs and settings that clients may use
    "transaction.version": FeatureLevels(2, 2),  # transactions of KIP-890, which clients choose their requests by
}
