"""Requests about many topics or partitions are sent in parts: a broker of Odradek closes the connection of a request
with too many elements (`Message.elements_per_level`), and a part is answered within the time limit of a request."""

from __future__ import annotations

from collections import defaultdict
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

T = TypeVar("T")

TOPICS_PER_REQUEST = 1_000
PARTITIONS_PER_REQUEST = 2_000


def in_parts(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """The items in lists of at most `size`."""
    rest = iter(items)
    while part := list(islice(rest, size)):
        yield part


def by_topic(partitions: Iterable[tuple[str, T]]) -> dict[str, list[T]]:
    """Partitions, each with its topic, as requests list them."""
    topics: dict[str, list[T]] = defaultdict(list)
    for topic, partition in partitions:
        topics[topic].append(partition)
    return topics
