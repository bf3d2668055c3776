"""Which version of Odradek can read a change: the metadata level. Pure.

A level is added with each release whose changes an older one cannot decode. A broker registers the highest level that
it knows; the controller commits no change of a higher level than every registered broker knows, so that a cluster can
be upgraded broker by broker. Versions that register no level know the first one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.metadata.changes import (
    AclsAdded,
    AclsRemoved,
    DelegationTokenChanged,
    DelegationTokenRemoved,
    FeatureLevelChanged,
    ScramCredentialChanged,
    StandInKeyChosen,
    StreamChanged,
    StreamDeleted,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from odradek.metadata.changes import Change

FIRST_LEVEL = 1
NEWEST_LEVEL = 4
# The others are of the first level.
LEVELS: Mapping[type, int] = {
    AclsAdded: 2,
    AclsRemoved: 2,
    ScramCredentialChanged: 2,
    StandInKeyChosen: 2,
    DelegationTokenChanged: 2,
    DelegationTokenRemoved: 2,
    FeatureLevelChanged: 3,
    StreamChanged: 4,
    StreamDeleted: 4,
}


def level_of(changes: Iterable[Change]) -> int:
    """The level that a broker must know to read all of them."""
    return max((LEVELS.get(type(change), FIRST_LEVEL) for change in changes), default=FIRST_LEVEL)


def brokers_below(level: int, known_levels: Mapping[int, int]) -> list[int]:
    """The brokers, by id, that do not know the level."""
    return sorted(node_id for node_id, known in known_levels.items() if known < level)
