"""Replication throttles: whom they cover, and when more has passed than the rate allows."""

from odradek.configuration.config_types import ConfigResourceType
from odradek.metadata.image import ConfigResource, MetadataImage
from odradek.replica.replication_throttle import FOLLOWER, LEADER, ReplicationThrottle, throttled_partitions


def image(**lists: str) -> MetadataImage:
    """`leader` and `follower` are the lists of topic t."""
    values = {f"{side}.replication.throttled.replicas": text for side, text in lists.items()}
    resource = ConfigResource(ConfigResourceType.TOPIC, "t")
    return MetadataImage(version=0, cluster_id="c", controller_id=0, configs={resource: values})


class Scene:
    def __init__(self, rate: float | None) -> None:
        self.rate = rate
        self.now_ms = 0.0
        self.throttle = ReplicationThrottle(lambda: self.rate, lambda: self.now_ms)


def test_a_list_names_replicas_by_partition_and_broker() -> None:
    listed = image(leader="0:1,0:2,3:1", follower="1:2")
    assert throttled_partitions(listed, LEADER, 1) == {"t": frozenset({0, 3})}
    assert throttled_partitions(listed, LEADER, 2) == {"t": frozenset({0})}
    assert throttled_partitions(listed, LEADER, 7) == {}
    assert throttled_partitions(listed, FOLLOWER, 2) == {"t": frozenset({1})}


def test_a_star_covers_every_partition() -> None:
    throttle = Scene(1).throttle
    throttle.set_partitions(throttled_partitions(image(leader="*"), LEADER, 1))
    assert throttle.covers("t", 9)
    assert not throttle.covers("u", 9)


def test_nothing_is_covered_without_lists() -> None:
    throttle = Scene(1).throttle
    throttle.set_partitions(throttled_partitions(image(leader=""), LEADER, 1))
    assert not throttle.covers("t", 0)
    assert not throttle.has_partitions


def test_the_mean_of_ten_seconds_counts() -> None:
    scene = Scene(100)
    scene.throttle.record(1_000)
    assert not scene.throttle.is_exceeded
    scene.throttle.record(1)
    assert scene.throttle.is_exceeded


def test_bytes_are_forgotten_after_eleven_seconds() -> None:
    scene = Scene(1)
    scene.throttle.record(1_000_000)
    scene.now_ms = 10_999
    assert scene.throttle.is_exceeded
    scene.now_ms = 11_000
    assert not scene.throttle.is_exceeded


def test_a_rate_applies_when_it_is_set() -> None:
    scene = Scene(None)
    scene.throttle.record(1_000_000)
    assert not scene.throttle.is_exceeded
    scene.rate = 1
    assert scene.throttle.is_exceeded
