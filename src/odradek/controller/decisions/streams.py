"""The controller's decisions about streams: creating, editing and deleting them. Pure.

A stream is one value of the metadata: an edit is one change, whatever the number of its topics. Deleting a stream
deletes its topics.
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING, NamedTuple

from odradek.configuration.config_types import ConfigResourceType
from odradek.configuration.topic_configs import check_topic_configs
from odradek.controller.decisions.topics import MAX_PARTITIONS_PER_REQUEST, QUOTA_EXCEEDED, duplicates
from odradek.conventions.dataclass import dataclass
from odradek.metadata.changes import StreamChanged, StreamDeleted
from odradek.metadata.image import merge
from odradek.metadata.streams import TOPIC_SEPARATOR, StreamImage, illegal_path_reason
from odradek.protocol.errors import ErrorCode
from odradek.protocol.refusal import Refusal
from odradek.security.access_expressions import ExpressionError, expression_of_user, parse_expression
from odradek.security.acls.stream_permissions import PERMISSIONS
from odradek.security.quotas.mutation_quota import UNLIMITED_MUTATIONS, MutationQuota

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from odradek.controller.decisions.topics import Cluster
    from odradek.metadata.changes import Change
    from odradek.metadata.image import MetadataImage

MOST_STREAMS_PER_REQUEST = 1_000
_TOO_MANY = Refusal(ErrorCode.POLICY_VIOLATION, f"A request may name {MOST_STREAMS_PER_REQUEST} streams.")
# They name single partitions, or all of a topic.
_SETTINGS_OF_TOPICS = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")
_NAMED_TWICE = Refusal(ErrorCode.INVALID_REQUEST, "The request names this stream more than once.")


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamRequest:
    """A new stream, or an edit of one. None keeps what is there, or takes the default; a setting to None is removed."""

    path: str
    default_partitions: int | None = None
    creates_topics: bool | None = None
    settings: Mapping[str, str | None] = field(default_factory=dict)
    permissions: Mapping[str, str] = field(default_factory=dict)


class StreamResult(NamedTuple):
    path: str
    refusal: Refusal | None = None


def decide_stream_creations(
    requests: Sequence[StreamRequest], owner: str, cluster: Cluster
) -> tuple[list[StreamResult], list[Change]]:
    """The owner gets every permission that the request does not name."""
    own = dict.fromkeys(PERMISSIONS, expression_of_user(owner))

    def draft(request: StreamRequest) -> StreamImage | Refusal:
        refusal = _check_new_path(request.path, cluster.image)
        if refusal is not None:
            return refusal
        return StreamImage(path=request.path, stream_id=cluster.new_topic_id(), owner=owner, permissions=own)

    return _decide(requests, draft, cluster)


def decide_stream_edits(requests: Sequence[StreamRequest], cluster: Cluster) -> tuple[list[StreamResult], list[Change]]:
    return _decide(requests, lambda request: cluster.image.streams.get(request.path) or unknown(request.path), cluster)


def decide_stream_deletions(
    paths: Iterable[str], cluster: Cluster, mutations: MutationQuota = UNLIMITED_MUTATIONS
) -> tuple[list[StreamResult], list[Change]]:
    results: list[StreamResult] = []
    changes: list[Change] = []
    for path in dict.fromkeys(paths):
        stream = cluster.image.streams.get(path)
        if not cluster.config.delete_topic_enable:
            refusal = Refusal(ErrorCode.TOPIC_DELETION_DISABLED, "Topic deletion is disabled.")
        elif stream is None:
            refusal = unknown(path)
        elif not mutations.allows(sum(len(topic.partitions) for topic in cluster.image.topics_of(path))):
            refusal = QUOTA_EXCEEDED
        else:
            changes.append(StreamDeleted(stream.stream_id))
            results.append(StreamResult(path))
            continue
        results.append(StreamResult(path, refusal))
    return results, changes


def _decide(
    requests: Sequence[StreamRequest], draft: Callable[[StreamRequest], StreamImage | Refusal], cluster: Cluster
) -> tuple[list[StreamResult], list[Change]]:
    if len(requests) > MOST_STREAMS_PER_REQUEST:
        return refuse_streams([request.path for request in requests], _TOO_MANY), []
    repeated = duplicates(request.path for request in requests)
    results = [StreamResult(path, _NAMED_TWICE) for path in repeated]
    changes: list[Change] = []
    for request in requests:
        if request.path in repeated:
            continue
        begun = draft(request)
        edited = begun if isinstance(begun, Refusal) else _edit(begun, request, cluster)
        if isinstance(edited, Refusal):
            results.append(StreamResult(request.path, edited))
            continue
        results.append(StreamResult(request.path))
        if edited != cluster.image.streams.get(request.path):
            changes.append(StreamChanged(edited))
    return results, changes


def _edit(stream: StreamImage, request: StreamRequest, cluster: Cluster) -> StreamImage | Refusal:
    partitions = stream.default_partitions if request.default_partitions is None else request.default_partitions
    if not 1 <= partitions <= MAX_PARTITIONS_PER_REQUEST:
        reason = f"A topic has 1 to {MAX_PARTITIONS_PER_REQUEST} partitions, not {partitions}."
        return Refusal(ErrorCode.INVALID_PARTITIONS, reason)
    settings = merge(stream.settings, request.settings)
    refusal = _check_settings(stream.path, settings, cluster) or _check_permissions(request.permissions)
    if refusal is not None:
        return refusal
    return replace(
        stream,
        default_partitions=partitions,
        creates_topics=stream.creates_topics if request.creates_topics is None else request.creates_topics,
        settings=settings,
        permissions={**stream.permissions, **request.permissions},
    )


def _check_settings(path: str, settings: Mapping[str, str], cluster: Cluster) -> Refusal | None:
    """Of the stream, and together with those that its topics have of their own."""
    of_topics = next((name for name in _SETTINGS_OF_TOPICS if name in settings), None)
    if of_topics is not None:
        return Refusal(ErrorCode.INVALID_CONFIG, f"{of_topics} is a setting of single topics, not of a stream.")
    refusal = check_topic_configs(settings, cluster.config)
    if refusal is not None:
        return refusal
    prefix = path + TOPIC_SEPARATOR
    for resource, own in cluster.image.configs.items():
        if resource.type is ConfigResourceType.TOPIC and resource.name.startswith(prefix):
            refusal = check_topic_configs({**settings, **own}, cluster.config)
            if refusal is not None:
                message = f"With the settings of the topic '{resource.name}': {refusal.message}"
                return refusal._replace(message=message)
    return None


def _check_permissions(permissions: Mapping[str, str]) -> Refusal | None:
    for name, expression in permissions.items():
        if name not in PERMISSIONS:
            reason = f"There is no permission '{name}': the permissions are {', '.join(PERMISSIONS)}."
            return Refusal(ErrorCode.INVALID_REQUEST, reason)
        try:
            parse_expression(expression)
        except ExpressionError as problem:
            return Refusal(ErrorCode.INVALID_REQUEST, f"The permission '{name}' cannot be read: {problem}.")
    return None


def _check_new_path(path: str, image: MetadataImage) -> Refusal | None:
    reason = illegal_path_reason(path)
    if reason is not None:
        return Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, reason)
    if path in image.streams:
        return Refusal(ErrorCode.TOPIC_ALREADY_EXISTS, f"Stream '{path}' already exists.")
    taken = image.topic_like_alias(path)
    if taken is not None:
        reason = f"The topic '{taken}' has a name that would be an alias in the stream '{path}'."
        return Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, reason)
    return None


def refuse_streams(paths: Iterable[str], refusal: Refusal) -> list[StreamResult]:
    return [StreamResult(path, refusal) for path in dict.fromkeys(paths)]


def unknown(path: str) -> Refusal:
    return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no stream '{path}'.")
