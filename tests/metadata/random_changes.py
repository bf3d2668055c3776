"""Hypothesis strategies for images and for changes that can be applied to them."""

from hypothesis import strategies as st

from odradek.configuration.config_types import ConfigResourceType
from odradek.configuration.listeners import Endpoint
from odradek.metadata.changes import (
    AclsAdded,
    AclsRemoved,
    BrokerRegistered,
    BrokerRemoved,
    Change,
    ClientQuotaChanged,
    ConfigsChanged,
    ControllerElected,
    DelegationTokenChanged,
    DelegationTokenRemoved,
    FeatureLevelChanged,
    PartitionsAdded,
    PartitionsChanged,
    ProducerIdsAllocated,
    ScramCredentialChanged,
    StandInKeyChosen,
    StreamChanged,
    StreamDeleted,
    TopicCreated,
    TopicDeleted,
)
from odradek.metadata.entities import BrokerImage, PartitionImage, TopicImage
from odradek.metadata.image import MetadataImage
from odradek.metadata.snapshot import empty_image
from odradek.metadata.streams import StreamImage
from odradek.metadata.topic_names import is_internal
from odradek.security.acls.bindings import AclBinding, PatternType, Permission
from odradek.security.acls.stream_permissions import PERMISSIONS
from odradek.security.authorizer import Operation, ResourceType
from odradek.security.delegation_tokens import DelegationToken
from odradek.security.principals import Principal
from odradek.security.scram_credentials import ScramCredential, ScramMechanism

PATHS = ["/s", "/s/t", "/u"]
NAMES = ["a", "b.c", "__consumer_offsets", "d-e", "/s:a", "/s:b", "/s/t:a"]

broker_ids = st.lists(st.integers(0, 5), max_size=3).map(tuple)
texts = st.text("aé漢🎈\0", max_size=4)


def partition(index: int, partition_epoch: int) -> st.SearchStrategy[PartitionImage]:
    return st.builds(
        PartitionImage,
        st.just(index),
        broker_ids,
        broker_ids,
        st.integers(-1, 5),
        st.integers(0, 2**31 - 1),
        st.just(partition_epoch),
        *([st.just(()) | broker_ids] * 4),
    )


def new_partitions(first: int, count: int) -> st.SearchStrategy[tuple[PartitionImage, ...]]:
    return st.tuples(*(partition(index, 0) for index in range(first, first + count)))


@st.composite
def topic_change(draw: st.DrawFn, image: MetadataImage) -> Change:
    if not image.topics or (len(image.topics) < len(NAMES) and draw(st.booleans())):
        name = draw(st.sampled_from([name for name in NAMES if name not in image.topics]))
        made = draw(new_partitions(0, draw(st.integers(1, 3))))
        return TopicCreated(TopicImage(name, draw(st.uuids(version=4)), made, is_internal(name)))
    topic = image.topics[draw(st.sampled_from(sorted(image.topics)))]
    kind = draw(st.sampled_from(["delete", "add", "change"]))
    if kind == "delete":
        return TopicDeleted(topic.topic_id)
    if kind == "add":
        return PartitionsAdded(topic.topic_id, draw(new_partitions(len(topic.partitions), draw(st.integers(1, 2)))))
    current = draw(st.sampled_from(topic.partitions))
    return PartitionsChanged(topic.topic_id, (draw(partition(current.index, current.partition_epoch + 1)),))


@st.composite
def stream_change(draw: st.DrawFn, image: MetadataImage) -> Change:
    is_removal = draw(st.booleans())
    if image.streams and is_removal:
        return StreamDeleted(image.streams[draw(st.sampled_from(sorted(image.streams)))].stream_id)
    path = draw(st.sampled_from(PATHS))
    present = image.streams.get(path)
    return StreamChanged(
        StreamImage(
            path=path,
            stream_id=draw(st.uuids(version=4)) if present is None else present.stream_id,
            owner=draw(texts),
            default_partitions=draw(st.integers(-1, 4096)),
            creates_topics=draw(st.booleans()),
            settings=draw(st.dictionaries(texts, texts, max_size=2)),
            permissions=draw(st.dictionaries(st.sampled_from(PERMISSIONS), texts, max_size=2)),
        )
    )


@st.composite
def broker_change(draw: st.DrawFn, image: MetadataImage) -> Change:
    is_removal = draw(st.booleans())
    if image.brokers and is_removal:
        broker = image.brokers[draw(st.sampled_from(sorted(image.brokers)))]
        return BrokerRemoved(broker.node_id, broker.broker_epoch)
    endpoint = st.builds(Endpoint, texts, st.integers(0, 65535))
    node_id = draw(st.integers(0, 5))
    earlier_epochs = [broker.broker_epoch for broker in image.brokers.values()]
    return BrokerRegistered(
        BrokerImage(
            node_id,
            draw(st.dictionaries(texts, endpoint, max_size=2)),
            draw(st.none() | texts),
            max([image.version, *earlier_epochs]) + 1,
            draw(st.booleans()),
            draw(st.booleans()),
        )
    )


@st.composite
def acl_change(draw: st.DrawFn, image: MetadataImage) -> Change:
    present = list(image.acls.bindings)
    drawn = st.builds(
        AclBinding,
        st.sampled_from(ResourceType),
        texts,
        st.sampled_from(PatternType),
        texts,
        texts,
        st.sampled_from(Operation),
        st.sampled_from(Permission),
    )
    is_removal = draw(st.booleans())
    if present and is_removal:
        return AclsRemoved(tuple(draw(st.lists(st.sampled_from(present), min_size=1, unique=True))))
    new = st.lists(drawn.filter(lambda each: each not in present), min_size=1, max_size=3, unique=True)
    return AclsAdded(tuple(draw(new)))


@st.composite
def user_change(draw: st.DrawFn, image: MetadataImage) -> Change:
    kind = draw(st.sampled_from(["credential", "remove credential", "key", "token", "remove token"]))
    secrets, times = st.binary(max_size=4), st.integers(0, 2**63 - 1)
    if kind == "remove credential" and image.users.scram_credentials:
        return ScramCredentialChanged(*draw(st.sampled_from(sorted(image.users.scram_credentials))), None)
    if kind == "remove token" and image.users.delegation_tokens:
        return DelegationTokenRemoved(draw(st.sampled_from(sorted(image.users.delegation_tokens))))
    if kind == "key":
        return StandInKeyChosen(draw(st.binary(min_size=1, max_size=4)))
    if "token" in kind:
        principals = st.builds(Principal, texts, texts)
        renewers = st.lists(principals, max_size=2).map(tuple)
        return DelegationTokenChanged(
            draw(st.builds(DelegationToken, texts, principals, principals, renewers, times, times, times))
        )
    credential = st.builds(ScramCredential, secrets, secrets, secrets, st.integers(0, 2**31 - 1))
    return ScramCredentialChanged(draw(texts), draw(st.sampled_from(ScramMechanism)), draw(credential))


@st.composite
def any_change(draw: st.DrawFn, image: MetadataImage) -> Change:
    """A change that can be applied to this image."""
    kinds = ["topic", "topic", "stream", "broker", "configs", "quota", "acl", "ids", "controller", "user", "feature"]
    kind = draw(st.sampled_from(kinds))
    if kind == "topic":
        return draw(topic_change(image))
    if kind == "stream":
        return draw(stream_change(image))
    if kind == "broker":
        return draw(broker_change(image))
    if kind == "user":
        return draw(user_change(image))
    if kind == "configs":
        resource_type = draw(st.sampled_from([ConfigResourceType.BROKER, ConfigResourceType.GROUP]))
        values = draw(st.dictionaries(st.sampled_from("xyz"), st.none() | texts, min_size=1))
        return ConfigsChanged(resource_type, draw(texts), values)
    if kind == "quota":
        parts = st.tuples(st.sampled_from(["user", "ip"]), st.none() | texts)
        entity = draw(st.frozensets(parts, min_size=1, max_size=1))
        quotas = st.dictionaries(st.sampled_from("xyz"), st.none() | st.floats(0, 1e9), min_size=1)
        return ClientQuotaChanged(entity, draw(quotas))
    if kind == "acl":
        return draw(acl_change(image))
    if kind == "feature":
        return FeatureLevelChanged(draw(texts), draw(st.integers(0, 2**15 - 1)))
    if kind == "ids":
        return ProducerIdsAllocated(image.next_producer_id + draw(st.integers(1, 1000)))
    return ControllerElected(draw(st.integers(0, 5)), image.controller_epoch + draw(st.integers(1, 3)))


@st.composite
def commits(draw: st.DrawFn, image: MetadataImage, most: int = 5) -> list[list[Change]]:
    """Commits that follow each other from this image on."""
    made: list[list[Change]] = []
    for _ in range(draw(st.integers(1, most))):
        changes: list[Change] = []
        after = image
        for _ in range(draw(st.integers(1, 3))):
            changes.append(draw(any_change(after)))
            after = after.apply(changes[-1])
        image = image.apply_all(changes)
        made.append(changes)
    return made


@st.composite
def images(draw: st.DrawFn) -> MetadataImage:
    image = empty_image("cluster")
    for changes in draw(commits(image)):
        image = image.apply_all(changes)
    return image
