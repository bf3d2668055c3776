"""Names of streams and of their topics, and how topics inherit."""

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from odradek.configuration.config_types import ConfigResourceType
from odradek.log.escaped_names import escape_topic
from odradek.log.log_directory import partition_of
from odradek.metadata.changes import ConfigsChanged, StreamChanged, StreamDeleted, TopicCreated, TopicDeleted
from odradek.metadata.entities import TopicImage
from odradek.metadata.image import InvalidChange
from odradek.metadata.snapshot import empty_image, image_as_changes, image_from_changes
from odradek.metadata.streams import (
    MAX_ESCAPED_BYTES,
    StreamImage,
    StreamTopicName,
    alias_prefix,
    illegal_path_reason,
    illegal_topic_reason,
    split_alias,
    split_name,
)
from odradek.metadata.topic_names import illegal_name_reason

components = st.text("abzAZ09_-", min_size=1, max_size=4)
paths = st.lists(components, min_size=1, max_size=4).map(lambda parts: "/" + "/".join(parts))
topics = st.text("abzAZ09._-", min_size=1, max_size=6)


@given(paths, topics)
def test_a_name_its_alias_and_its_directory_lead_back_to_it(path: str, topic: str) -> None:
    name = StreamTopicName(path, topic)
    assert illegal_path_reason(path) is None
    assert illegal_topic_reason(name.name) is None
    assert split_name(name.name) == name
    assert split_alias(name.alias) == name
    assert illegal_name_reason(name.alias) is None, "clients that check names accept it"
    assert partition_of(f"{escape_topic(name.name)}-3") == (name.name, 3)


@given(paths, topics, paths, topics)
def test_two_topics_never_have_one_alias_or_one_directory(path: str, topic: str, other: str, second: str) -> None:
    names = {StreamTopicName(path, topic), StreamTopicName(other, second)}
    assert len({each.alias for each in names}) == len({escape_topic(each.name) for each in names}) == len(names)


@pytest.mark.parametrize(
    "path",
    ["", "/", "a", "//a", "/a/", "/a//b", "/a.b", "/..", "/a/../b", "/a:b", "/ü", "/a b", "/a%2Fb", "/" + "a" * 206],
)
def test_an_illegal_path_is_refused(path: str) -> None:
    reason = illegal_path_reason(path)
    assert reason is not None
    assert reason.startswith("Stream path is invalid: ")


@pytest.mark.parametrize(
    "name",
    ["/a", "/a:", "/:b", "/a:b:c", "/a:b/c", "/a:ü", "/a.b:c", "/a:" + "b" * 300, "/../x:a", "/a%2F..:b", "/a:b%00"],
)
def test_an_illegal_name_is_refused(name: str) -> None:
    reason = illegal_name_reason(name)
    assert reason is not None
    assert "is invalid: " in reason


def test_the_longest_name_leaves_room_for_every_directory_of_a_partition() -> None:
    name = "/a:" + "b" * (MAX_ESCAPED_BYTES - len("%2Fa%3A"))
    assert illegal_name_reason(name) is None
    assert illegal_name_reason(name + "b") is not None
    assert len(f"{escape_topic(name)}-99999.{uuid.uuid4().hex}-future") <= 255


@pytest.mark.parametrize("alias", ["plain", "a.b", "..b", "a..", "a...", "/a..b", "a b..c"])
def test_other_names_are_no_aliases(alias: str) -> None:
    found = split_alias(alias)
    assert found is None or (alias, found) == ("a...", StreamTopicName("/a", "."))


def new_stream(path: str, **settings: str) -> StreamImage:
    return StreamImage(path=path, stream_id=uuid.uuid5(uuid.NAMESPACE_URL, path), owner="ann", settings=settings)


def test_a_stream_cannot_take_the_place_of_another() -> None:
    image = empty_image("c").apply(StreamChanged(new_stream("/a")))
    other = StreamImage(path="/a", stream_id=uuid.uuid4(), owner="bob")
    with pytest.raises(InvalidChange):
        image.apply(StreamChanged(other))
    with pytest.raises(InvalidChange):
        image.apply(StreamDeleted(uuid.uuid4()))


def test_prefixes_of_aliases_are_those_of_topics() -> None:
    assert StreamTopicName("/a/b", "c").alias.startswith(alias_prefix("/a/b"))


PATHS, TOPICS = ["/s", "/s/t"], ["/s:a", "/s:b", "/s/t:a", "plain"]
SETTINGS = ["retention.ms", "cleanup.policy"]
VALUES = ["1", "2"]


class Inheritance(RuleBasedStateMachine):
    """Streams and topics are created, edited, deleted and made again; the image is written and read in between."""

    def __init__(self) -> None:
        super().__init__()
        self.image = empty_image("c")
        self.streams: dict[str, dict[str, str]] = {}
        self.topics: dict[str, dict[str, str]] = {}
        self.ids = iter(range(1, 1_000_000))

    @rule(path=st.sampled_from(PATHS), settings=st.dictionaries(st.sampled_from(SETTINGS), st.sampled_from(VALUES)))
    def create_or_edit_stream(self, path: str, settings: dict[str, str]) -> None:
        present = self.image.streams.get(path)
        stream_id = uuid.UUID(int=next(self.ids)) if present is None else present.stream_id
        stream = StreamImage(path=path, stream_id=stream_id, owner="ann", settings=settings)
        self.image = self.image.apply(StreamChanged(stream))
        self.streams[path] = settings

    @precondition(lambda self: self.streams)
    @rule(data=st.data())
    def delete_stream(self, data: st.DataObject) -> None:
        path = data.draw(st.sampled_from(sorted(self.streams)))
        self.image = self.image.apply(StreamDeleted(self.image.streams[path].stream_id))
        del self.streams[path]
        self.topics = {name: own for name, own in self.topics.items() if name.rpartition(":")[0] != path}

    @rule(name=st.sampled_from(TOPICS))
    def create_or_delete_topic(self, name: str) -> None:
        path = name.rpartition(":")[0]
        if name in self.topics:
            self.image = self.image.apply(TopicDeleted(self.image.topics[name].topic_id))
            del self.topics[name]
        elif not path or path in self.streams:
            topic = TopicImage(name, uuid.UUID(int=next(self.ids)), (), is_internal=False)
            self.image = self.image.apply(TopicCreated(topic))
            self.topics[name] = {}

    @precondition(lambda self: self.topics)
    @rule(data=st.data(), setting=st.sampled_from(SETTINGS), value=st.none() | st.sampled_from(VALUES))
    def override_or_reset(self, data: st.DataObject, setting: str, value: str | None) -> None:
        name = data.draw(st.sampled_from(sorted(self.topics)))
        self.image = self.image.apply(ConfigsChanged(ConfigResourceType.TOPIC, name, {setting: value}))
        self.topics[name].pop(setting, None)
        if value is not None:
            self.topics[name][setting] = value

    @rule()
    def write_and_read(self) -> None:
        image = self.image
        self.image = image_from_changes(empty_image("c"), image_as_changes(image), image.version)

    @invariant()
    def topics_have_their_own_settings_over_those_of_their_stream(self) -> None:
        assert self.image.topics.keys() == self.topics.keys()
        assert self.image.streams.keys() == self.streams.keys()
        for name, own in self.topics.items():
            inherited = self.streams.get(name.rpartition(":")[0], {})
            assert self.image.topic_overrides(name) == {**inherited, **own}


TestInheritance = Inheritance.TestCase
