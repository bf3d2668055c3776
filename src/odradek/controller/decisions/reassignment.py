"""The sets of replicas of a reassignment: while it runs, when it is complete, and when it is cancelled. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Self

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from odradek.metadata.entities import PartitionImage

Replicas = tuple[int, ...]


class Reassignment(NamedTuple):
    """While it runs, `replicas` has the target replicas first, then those to be removed."""

    replicas: Replicas
    adding: Replicas
    removing: Replicas

    @classmethod
    def to(cls, current: Sequence[int], target: Sequence[int]) -> Self:
        removing = tuple(sorted(set(current) - set(target)))
        adding = tuple(sorted(set(target) - set(current)))
        return cls((*target, *removing), adding, removing)

    @classmethod
    def of(cls, partition: PartitionImage) -> Self:
        return cls(partition.replicas, partition.adding_replicas, partition.removing_replicas)

    @property
    def is_running(self) -> bool:
        return bool(self.adding or self.removing)

    @property
    def target(self) -> Replicas:
        return without(self.replicas, self.removing)

    @property
    def original(self) -> Replicas:
        """The replicas to return to when the reassignment is cancelled."""
        return without(self.replicas, self.adding)

    def is_complete(self, in_sync: Sequence[int]) -> bool:
        """Whether the replicas to be removed may be removed: all new ones are in sync, and all that stay if there
        will be fewer replicas than before."""
        staying = without(in_sync, self.removing)
        needed = self.target if len(self.adding) < len(self.removing) else self.adding
        return self.is_running and bool(staying) and set(needed) <= set(staying)


def without(replicas: Sequence[int], removed: Collection[int]) -> Replicas:
    return tuple(replica for replica in replicas if replica not in removed)
