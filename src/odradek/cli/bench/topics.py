"""The topic of a bench: an existing one, or a new one with the requested partitions."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from odradek.cli.framework.output import note
from odradek.conventions.failures import Failure
from odradek.conventions.figures import count_text

if TYPE_CHECKING:
    from odradek.admin.cluster import Cluster, TopicDescription

BENCH_TOPIC = "odradek-bench"
PAYLOAD_WORDS = 100_000  # a larger value repeats the text


def bench_topic(cluster: Cluster, name: str, partitions: int) -> TopicDescription:
    """The existing topic, or a new one. Its partitions have leaders when this returns."""
    if cluster.create_topic(name, partitions):
        note(
            f"created topic {name} with {count_text(partitions, 'partition')}; `odradek topic delete {name}` removes it"
        )
    description = existing_topic(cluster, name)
    cluster.latest_offsets(name, [partition.id for partition in description.partitions])
    return description


def existing_topic(cluster: Cluster, name: str) -> TopicDescription:
    try:
        return cluster.describe_topic(name)
    except Failure as failure:
        raise Failure(f"{failure.message}; `odradek bench produce` creates and fills one") from None


def written_so_far(cluster: Cluster, description: TopicDescription) -> int:
    """The sum of the partitions' end offsets: its growth is the number of records that a run has written."""
    partitions = [partition.id for partition in description.partitions]
    return sum(cluster.latest_offsets(description.name, partitions).values())


def check_plaintext(cluster: Cluster) -> None:
    """The raw engine has neither TLS nor SASL."""
    protocol = cluster.properties.get("security.protocol", "plaintext")
    if protocol.lower() != "plaintext":
        raise Failure(f"--engine raw speaks plaintext only, not {protocol}; use --engine client")


def payload(size_bytes: int) -> bytes:
    """Text that compresses about as well as JSON. It is the same in every run."""
    words = random.Random(7).choices(
        [b"pressure", b"temperature", b"oil", b"rig", b"107", b"30", b"18", b"valve"], k=min(size_bytes, PAYLOAD_WORDS)
    )
    text = b" ".join([*words, b""])
    return (text * (size_bytes // len(text) + 1))[:size_bytes] if text else b""
