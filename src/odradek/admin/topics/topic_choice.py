"""The topics that the arguments of a command name: by their names, or by patterns as in a shell."""

from __future__ import annotations

import fnmatch
from typing import TYPE_CHECKING

from confluent_kafka import KafkaException

from odradek.admin.errors import NoSuchTopic
from odradek.conventions.failures import Failure, did_you_mean
from odradek.conventions.figures import count_text

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from odradek.admin.cluster import Cluster

MOST_NAMED = 5
MOST_COMPARED = 5_000  # with a name that does not exist
_PATTERN_CHARACTERS = frozenset("*?[")  # none of them may stand in the name of a topic


def has_pattern(names: Sequence[str]) -> bool:
    return any(_PATTERN_CHARACTERS.intersection(name) for name in names)


def choose_topics(cluster: Cluster, names: Sequence[str], *, internal: bool = False) -> list[str]:
    """The named topics in the order of the arguments, all without arguments; Failure for a pattern that matches none.

    Patterns match internal topics only if `internal`."""
    if names and not has_pattern(names):
        return list(dict.fromkeys(names))
    existing = [name for name in cluster.topic_names() if internal or not name.startswith("__")]
    chosen: dict[str, None] = dict.fromkeys(() if names else existing)
    for name in names:
        if not has_pattern([name]):
            chosen[name] = None
            continue
        matching = fnmatch.filter(existing, name)
        if not matching:
            raise Failure(f"no topic matches {name}; `odradek topic list` shows those that exist")
        chosen.update(dict.fromkeys(matching))
    return list(chosen)


def topics_text(topics: Collection[str]) -> str:
    """`a, b`; the number of topics if there are many."""
    return ", ".join(topics) if len(topics) <= MOST_NAMED else count_text(len(topics), "topic")


def with_similar_topics(cluster: Cluster, failure: Failure) -> Failure:
    """The failure with a suggestion, if the name of a topic that does not exist is like those of others."""
    if not isinstance(failure, NoSuchTopic) or not failure.topic:
        return failure
    try:
        known = cluster.topic_names()
    except (Failure, KafkaException):
        return failure
    hint = did_you_mean(failure.topic, known[:MOST_COMPARED]) if failure.topic not in known else ""
    return Failure(f"{failure.message}; {hint}") if hint else failure
