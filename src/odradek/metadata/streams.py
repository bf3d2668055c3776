"""Streams: topics that are managed together. Pure.

The topic `/streams/pump:warning` belongs to the stream `/streams/pump`, the part of its name before the colon. That
name is legal while the stream exists, and the topic has the stream's settings where it has none of its own.

Clients that refuse such a name use the topic's alias, `streams.pump..warning`: slashes are dots, the colon is two. A
path has no dots, so the first two dots of an alias are the colon, and an alias has one meaning. While a stream exists,
all names that begin as its aliases do are names of its topics.
"""

from __future__ import annotations

import re
from dataclasses import field
from typing import TYPE_CHECKING, NamedTuple

from odradek.conventions.dataclass import dataclass
from odradek.log.escaped_names import escape_topic

if TYPE_CHECKING:
    import uuid
    from collections.abc import Mapping

ROOT = "/"
TOPIC_SEPARATOR = ":"
_ALIAS_SEPARATOR = ".."
MAX_ESCAPED_BYTES = 209
"""Of a name on disk, which leaves room for the partition, and for the UUID and the suffix of a directory that moves or
is deleted, in the 255 bytes of a file name."""

_LEGAL_PATH = re.compile(r"(?:/[a-zA-Z0-9_-]+)+", re.ASCII)
_LIMIT_TEXT = f"with its topic, and with 3 bytes for each '/' and ':', it has at most {MAX_ESCAPED_BYTES} bytes"
_LEGAL_TOPIC = re.compile(r"[a-zA-Z0-9._-]+", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamImage:
    """`settings` are topic settings, by Kafka's names. `permissions` are expressions (`security/access_expressions`) by
    the names of `stream_permissions.PERMISSIONS`; one that is missing allows nobody."""

    path: str
    stream_id: uuid.UUID
    owner: str
    default_partitions: int = 1
    creates_topics: bool = True
    settings: Mapping[str, str] = field(default_factory=dict)
    permissions: Mapping[str, str] = field(default_factory=dict)


class StreamTopicName(NamedTuple):
    path: str
    topic: str

    @property
    def name(self) -> str:
        return f"{self.path}{TOPIC_SEPARATOR}{self.topic}"

    @property
    def alias(self) -> str:
        return alias_prefix(self.path) + self.topic


def is_stream_topic(name: str) -> bool:
    """Whether this is the full name of a topic in a stream, legal or not."""
    return name.startswith(ROOT)


def split_name(name: str) -> StreamTopicName:
    """The path and the topic of a full name; the path is empty without a colon."""
    path, _, topic = name.rpartition(TOPIC_SEPARATOR)
    return StreamTopicName(path, topic)


def alias_prefix(path: str) -> str:
    """How the aliases of the stream's topics begin."""
    return path[1:].replace("/", ".") + _ALIAS_SEPARATOR


def split_alias(alias: str) -> StreamTopicName | None:
    """The topic that a name would stand for if its stream existed; None for a name that is no alias."""
    path, separator, topic = alias.partition(_ALIAS_SEPARATOR)
    if not separator or not topic:
        return None
    found = StreamTopicName("/" + path.replace(".", "/"), topic)
    return found if _LEGAL_PATH.fullmatch(found.path) else None


def split_alias_prefix(prefix: str) -> StreamTopicName | None:
    """The common beginning of all names in a stream, which rules name, by that of their aliases."""
    path = "/" + prefix.removesuffix(_ALIAS_SEPARATOR).replace(".", "/")
    return StreamTopicName(path, "") if prefix == alias_prefix(path) else None


def illegal_path_reason(path: str) -> str | None:
    """Why a stream cannot have this path."""
    if not _LEGAL_PATH.fullmatch(path):
        reason = f"'{path}' is not made of '/' and names of ASCII alphanumerics, '_' and '-', as /plant/pumps is"
    elif len(escape_topic(path + TOPIC_SEPARATOR)) >= MAX_ESCAPED_BYTES:
        reason = f"'{path}' is too long for names of topics: {_LIMIT_TEXT}"
    else:
        return None
    return f"Stream path is invalid: {reason}"


def illegal_topic_reason(name: str) -> str | None:
    """Why a topic of a stream cannot have this full name, whether its stream exists or not."""
    path, topic = split_name(name)
    if not path:
        reason = f"'{name}' has no ':' between the path of a stream and a topic"
    elif not _LEGAL_PATH.fullmatch(path):
        return illegal_path_reason(path)
    elif not topic:
        reason = f"'{name}' names no topic behind the ':'"
    elif not _LEGAL_TOPIC.fullmatch(topic):
        reason = f"'{topic}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    elif len(escape_topic(name)) > MAX_ESCAPED_BYTES:
        reason = f"'{name}' is too long: {_LIMIT_TEXT}"
    else:
        return None
    return f"Topic name is invalid: {reason}"
