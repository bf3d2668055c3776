"""Which level a change needs, and which brokers do not know it."""

import typing
import uuid

from odradek.metadata import changes
from odradek.metadata.metadata_level import FIRST_LEVEL, LEVELS, NEWEST_LEVEL, brokers_below, level_of

# Changes of the first release with clusters. A new kind of change belongs to a new level, never into this set.
FIRST = {
    changes.TopicCreated,
    changes.TopicDeleted,
    changes.PartitionsAdded,
    changes.PartitionsChanged,
    changes.ConfigsChanged,
    changes.ClientQuotaChanged,
    changes.ProducerIdsAllocated,
    changes.BrokerRegistered,
    changes.BrokerRemoved,
    changes.ControllerElected,
}


def test_every_change_has_a_level() -> None:
    assert {*typing.get_args(changes.Change)} == FIRST | {*LEVELS}
    assert {*LEVELS.values()} == {*range(FIRST_LEVEL + 1, NEWEST_LEVEL + 1)}


def test_the_highest_level_of_some_changes_counts() -> None:
    deleted, removed = changes.TopicDeleted(uuid.uuid4()), changes.AclsRemoved(())
    assert level_of([]) == level_of([deleted]) == FIRST_LEVEL
    assert level_of([deleted, removed, deleted]) == 2


def test_brokers_that_do_not_know_a_level_are_found() -> None:
    assert brokers_below(2, {3: 1, 1: 2, 2: 1}) == [2, 3]
    assert brokers_below(1, {3: 1}) == []
