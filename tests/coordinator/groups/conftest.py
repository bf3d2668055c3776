"""Shared by the tests of group APIs: a simulated broker with its topic of groups."""

from collections.abc import Iterator

import pytest

from tests.coordinator.groups.group_world import PARTITION_COUNT, GroupWorld


@pytest.fixture
def world() -> Iterator[GroupWorld]:
    properties = {"offsets.topic.num.partitions": str(PARTITION_COUNT), "offsets.retention.minutes": "30"}
    world = GroupWorld(1, properties)
    world.run(world.prepare())
    yield world
    world.close()
