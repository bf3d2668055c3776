"""Which partitions of a follower's fetch session have something new for it: a fetch visits only these, so that its cost
depends on what happens and not on how many partitions the follower has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Hashable

    from odradek.replica.waiting_requests import WaitingFetch


class WatchedPartition(Protocol):
    replica_watches: ReplicaWatches


class ReplicaWatches:
    """The watches of one partition: the sessions of followers that fetch it."""

    __slots__ = ("_keys",)

    def __init__(self) -> None:
        self._keys: dict[ReplicaWatch, Hashable] = {}

    def add(self, watch: ReplicaWatch, key: Hashable) -> None:
        self._keys[watch] = key

    def remove(self, watch: ReplicaWatch) -> None:
        self._keys.pop(watch, None)

    def append(self, size_bytes: int) -> None:
        """Records of this size were appended; followers read what is not committed."""
        for watch, key in tuple(self._keys.items()):
            watch.notice(key, size_bytes)

    def move(self, *, wakes: bool) -> None:
        """An offset that followers learn has moved. Unless `wakes`, they learn it with their next fetch."""
        for watch, key in tuple(self._keys.items()):
            if wakes:
                watch.notice(key, None)
            else:
                watch.changed[key] = None

    def wake(self) -> None:
        """The leader epoch has changed, or the partition cannot be fetched here any more."""
        for watch, key in tuple(self._keys.items()):
            watch.notice(key, None)


class ReplicaWatch:
    """Watches the partitions of one fetch session of a follower, which ends with the follower's registration. `changed`
    has the partitions to visit, by their keys in the session."""

    __slots__ = ("_watched", "broker_epoch", "changed", "throttled", "waiting")

    def __init__(self, broker_epoch: int) -> None:
        self.broker_epoch = broker_epoch
        self.changed: dict[Hashable, None] = {}
        self.throttled: frozenset[Hashable] = frozenset()  # partitions of the waiting fetch that do not end its wait
        self.waiting: WaitingFetch | None = None  # the fetch that waits for changes
        self._watched: dict[Hashable, WatchedPartition] = {}

    def watch(self, key: Hashable, partition: WatchedPartition) -> None:
        watched = self._watched.get(key)
        if watched is not partition:
            if watched is not None:
                watched.replica_watches.remove(self)
            self._watched[key] = partition
            partition.replica_watches.add(self, key)

    def unwatch(self, key: Hashable) -> None:
        self.changed.pop(key, None)
        watched = self._watched.pop(key, None)
        if watched is not None:
            watched.replica_watches.remove(self)

    def notice(self, key: Hashable, size_bytes: int | None) -> None:
        self.changed[key] = None
        if self.waiting is not None and key not in self.throttled:
            self.waiting.count_down(size_bytes)

    def close(self) -> None:
        for watched in self._watched.values():
            watched.replica_watches.remove(self)
        self._watched.clear()
        waiting, self.waiting = self.waiting, None
        if waiting is not None:
            waiting.finish()
