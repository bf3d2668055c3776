"""What the controller decides about streams and their topics."""

import uuid
from typing import Any

import pytest

from odradek.configuration.config_types import ConfigResourceType, ConfigSource
from odradek.controller.decisions.configs import ConfigAlteration, ConfigOperation, decide_alteration
from odradek.controller.decisions.request_results import decide_topic_creations
from odradek.controller.decisions.streams import (
    StreamRequest,
    decide_stream_creations,
    decide_stream_deletions,
    decide_stream_edits,
)
from odradek.controller.decisions.topics import Cluster, NewTopic, decide_topic
from odradek.metadata.changes import ConfigsChanged, StreamChanged
from odradek.metadata.streams import StreamImage
from odradek.protocol.errors import ErrorCode
from odradek.protocol.refusal import Refusal
from odradek.security.acls.stream_permissions import PERMISSIONS
from tests.controller.decisions.test_topics import TOPIC_ID, topic
from tests.controller.decisions.test_topics import cluster as plain_cluster

PATH = "/plant/pumps"


def cluster(*topics: str, **stream: Any) -> Cluster:
    made = plain_cluster(*(topic(name) for name in topics))
    if not stream:
        return made
    image = StreamImage(**{"path": PATH, "stream_id": uuid.UUID(int=1), "owner": "ann", **stream})
    return Cluster(made.image.apply(StreamChanged(image)), made.config, made.random_below, made.new_topic_id)


def create(*requests: StreamRequest, at: Cluster | None = None) -> tuple[list[Refusal | None], list[StreamImage]]:
    results, changes = decide_stream_creations(requests, "ann", at or cluster())
    return [each.refusal for each in results], [each.stream for each in changes if isinstance(each, StreamChanged)]


def test_the_creator_has_what_is_given_to_nobody_else() -> None:
    refusals, (made,) = create(StreamRequest(path=PATH, permissions={"consume": "p", "copy": ""}))
    assert refusals == [None]
    everything = dict.fromkeys(PERMISSIONS, "u:ann")
    assert made == StreamImage(
        path=PATH, stream_id=TOPIC_ID, owner="ann", permissions={**everything, "consume": "p", "copy": ""}
    )


@pytest.mark.parametrize(
    ("request_", "error", "words"),
    [
        (StreamRequest(path="/a.b"), ErrorCode.INVALID_TOPIC_EXCEPTION, "Stream path is invalid"),
        (StreamRequest(path=PATH), ErrorCode.TOPIC_ALREADY_EXISTS, "already exists"),
        (StreamRequest(path="/taken"), ErrorCode.INVALID_TOPIC_EXCEPTION, "The topic 'taken..x' has a name"),
        (StreamRequest(path="/b", default_partitions=10_001), ErrorCode.INVALID_PARTITIONS, "1 to 10000"),
        (StreamRequest(path="/b", default_partitions=-1), ErrorCode.INVALID_PARTITIONS, "not -1"),
        (StreamRequest(path="/b", settings={"retention.ms": "x"}), ErrorCode.INVALID_CONFIG, "retention.ms"),
        (StreamRequest(path="/b", settings={"retention.mss": "1"}), ErrorCode.INVALID_CONFIG, "retention.mss"),
        (
            StreamRequest(path="/b", settings={"leader.replication.throttled.replicas": "*"}),
            ErrorCode.INVALID_CONFIG,
            "a setting of single topics",
        ),
        (StreamRequest(path="/b", permissions={"read": "p"}), ErrorCode.INVALID_REQUEST, "no permission 'read'"),
        (StreamRequest(path="/b", permissions={"admin": "u:a &"}), ErrorCode.INVALID_REQUEST, "'admin' cannot be read"),
    ],
)
def test_a_stream_that_cannot_be_is_refused(request_: StreamRequest, error: ErrorCode, words: str) -> None:
    (refusal,), made = create(request_, at=cluster("taken..x", default_partitions=1))
    assert made == []
    assert refusal is not None
    assert refusal.error is error
    assert words in (refusal.message or "")


def test_a_stream_that_is_named_twice_is_not_created() -> None:
    refusals, made = create(StreamRequest(path=PATH), StreamRequest(path="/b"), StreamRequest(path=PATH))
    assert [each is None for each in refusals] == [False, True]
    assert [each.path for each in made] == ["/b"]


def test_an_edit_keeps_what_it_does_not_name_and_changes_nothing_twice() -> None:
    at = cluster(default_partitions=3, settings={"retention.ms": "1", "cleanup.policy": "compact"})
    request = StreamRequest(path=PATH, settings={"retention.ms": None, "segment.ms": "5"}, creates_topics=False)
    results, (change,) = decide_stream_edits([request], at)
    assert results == [(PATH, None)]
    assert isinstance(change, StreamChanged)
    stream = change.stream
    assert (stream.default_partitions, stream.creates_topics) == (3, False)
    assert stream.settings == {"cleanup.policy": "compact", "segment.ms": "5"}
    edited = Cluster(at.image.apply(change), at.config, at.random_below, at.new_topic_id)
    assert decide_stream_edits([request], edited) == ([(PATH, None)], [])
    (unknown,), changes = decide_stream_edits([StreamRequest(path="/none")], at)
    assert changes == []
    assert unknown.refusal is not None
    assert unknown.refusal.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_deleted_stream_takes_its_topics_and_no_others_along() -> None:
    at = cluster(f"{PATH}:a", f"{PATH}:b", f"{PATH}x:a", "plain", default_partitions=1)
    results, changes = decide_stream_deletions([PATH, PATH, "/none"], at)
    assert [each.refusal is None for each in results] == [True, False]
    assert list(at.image.apply_all(changes).topics) == [f"{PATH}x:a", "plain"]


def test_a_new_topic_has_the_partitions_of_its_stream_and_tells_where_settings_come_from() -> None:
    at = cluster(default_partitions=3, settings={"retention.ms": "7"})
    requests = [NewTopic(name=f"{PATH}:a"), NewTopic(name="plain"), NewTopic(name=f"{PATH}:b", partition_count=1)]
    results, _ = decide_topic_creations(requests, at)
    assert [len(each.topic.partitions) for each in results if each.topic] == [3, 1, 1]
    sources = [{entry.name: (entry.value, entry.source) for entry in each.configs}["retention.ms"] for each in results]
    inherited = ("7", ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG)
    assert sources == [inherited, ("604800000", ConfigSource.DEFAULT_CONFIG), inherited]


def test_a_topic_needs_its_stream() -> None:
    refusal = decide_topic(NewTopic(name="/none:a"), cluster(default_partitions=1))
    reason = "Topic name is invalid: there is no stream '/none' for '/none:a'"
    assert refusal == Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, reason)


def test_an_ordinary_topic_cannot_have_the_name_of_an_alias() -> None:
    refusal = decide_topic(NewTopic(name="plant.pumps..a"), cluster(default_partitions=1))
    reason = f"Topic name is invalid: 'plant.pumps..a' is the alias of '{PATH}:a'"
    assert refusal == Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, reason)


def test_settings_of_a_stream_and_of_its_topics_are_checked_together() -> None:
    at = cluster(f"{PATH}:a", settings={"min.compaction.lag.ms": "100"})
    lag = ConfigAlteration(ConfigResourceType.TOPIC, f"{PATH}:a", [ConfigOperation("max.compaction.lag.ms", 0, "50")])
    assert isinstance(decide_alteration(lag, at.image, at.config), Refusal)
    own = at.image.apply(ConfigsChanged(ConfigResourceType.TOPIC, f"{PATH}:a", {"max.compaction.lag.ms": "200"}))
    after = Cluster(own, at.config, at.random_below, at.new_topic_id)
    request = StreamRequest(path=PATH, settings={"min.compaction.lag.ms": "300"})
    ((_, refusal),), _ = decide_stream_edits([request], after)
    assert refusal is not None
    assert f"With the settings of the topic '{PATH}:a'" in (refusal.message or "")


def test_a_list_of_the_stream_is_appended_to() -> None:
    at = cluster(f"{PATH}:a", settings={"cleanup.policy": "compact"})
    append = ConfigAlteration(ConfigResourceType.TOPIC, f"{PATH}:a", [ConfigOperation("cleanup.policy", 2, "delete")])
    changed = decide_alteration(append, at.image, at.config)
    assert changed == ConfigsChanged(ConfigResourceType.TOPIC, f"{PATH}:a", {"cleanup.policy": "compact,delete"})
