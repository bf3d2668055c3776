"""Legal topic names. A name becomes part of a path on disk, so every name passes through this check."""

import re

from odradek.metadata.streams import illegal_topic_reason, is_stream_topic

MAX_NAME_LENGTH = 249
INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
# Kafka's metadata log, a name that clients cannot create.
CLUSTER_METADATA_TOPIC = "__cluster_metadata"

_LEGAL = re.compile(r"[a-zA-Z0-9._-]+", re.ASCII)


def illegal_name_reason(name: str) -> str | None:
    """Kafka's message that the name is illegal; None when it is legal. A full name of a topic in a stream is legal
    whether the stream exists or not."""
    if is_stream_topic(name):
        return illegal_topic_reason(name)
    if not name:
        reason = "the empty string is not allowed"
    elif name in (".", ".."):
        reason = f"'{name}' is not allowed"
    elif len(name) > MAX_NAME_LENGTH:
        reason = f"the length of '{name}' is longer than the max allowed length {MAX_NAME_LENGTH}"
    elif not _LEGAL.fullmatch(name):
        reason = f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    else:
        return None
    return f"Topic name is invalid: {reason}"


def is_internal(name: str) -> bool:
    return name in INTERNAL_TOPICS


def collision_key(name: str) -> str | None:
    """Names with the same key would have the same metric names; None for a name that cannot collide."""
    return name.replace(".", "_") if "." in name or "_" in name else None
