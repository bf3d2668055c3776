"""Rules on log directories: failed, nearly full, unevenly filled, or too small for what topics may keep."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from odradek.admin.doctor.finding import Finding, Severity, problem, warning
from odradek.conventions.figures import size_text
from odradek.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.admin.cluster_state import LogDirectory
    from odradek.admin.doctor.cluster.facts import ClusterFacts

NEARLY_FULL_RATIO = 0.85
FULL_RATIO = 0.95
SKEW_RATIO = 2.0
SMALLEST_SKEW_BYTES = 10 * 10**9
NO_LIMIT = "-1"
MOST_OF_A_VOLUME = 0.9


def failed_directories(facts: ClusterFacts) -> Iterator[Finding]:
    assert facts.disks is not None
    found = [each for each in facts.disks.directories if each.error_code]
    if found:
        yield problem(
            "log directories have failed: their replicas are offline",
            [f"{_place(each)}: {ErrorCode(each.error_code).name}" for each in found],
            "Replace the disk and restart the broker; its replicas are copied from the others. "
            "Check the files first if there is no other replica: odradek log verify DIRECTORY",
        )


def full_directories(facts: ClusterFacts) -> Iterator[Finding]:
    assert facts.disks is not None
    used = {
        each: 1 - each.usable_bytes / each.total_bytes
        for each in facts.disks.directories
        if each.total_bytes > 0 and each.usable_bytes >= 0
    }
    for severity, lowest, highest in (
        (Severity.PROBLEM, FULL_RATIO, 2.0),
        (Severity.WARNING, NEARLY_FULL_RATIO, FULL_RATIO),
    ):
        found = {each: ratio for each, ratio in used.items() if lowest <= ratio < highest}
        if found:
            yield Finding(
                severity,
                f"volumes of log directories are more than {lowest:.0%} full",
                tuple(
                    f"{_place(each)}: {ratio:.0%} of {size_text(each.total_bytes)}, {size_text(each.usable_bytes)} left"
                    for each, ratio in found.items()
                ),
                "Keep less (odradek config alter topic TOPIC --set retention.ms=…), move replicas to other brokers "
                "(odradek partition reassign TOPIC --to ID,ID,…), or enlarge the volume",
            )


def skewed_brokers(facts: ClusterFacts) -> Iterator[Finding]:
    """Stored bytes by broker: one holds more than twice the mean."""
    assert facts.disks is not None
    stored: dict[int, int] = defaultdict(int)
    for each in facts.disks.directories:
        stored[each.broker_id] += each.stored_bytes
    mean = sum(stored.values()) / len(stored) if stored else 0
    found = {
        broker_id: size
        for broker_id, size in stored.items()
        if size > SKEW_RATIO * mean and size - mean > SMALLEST_SKEW_BYTES
    }
    if found:
        yield warning(
            "brokers hold much more than others",
            [
                f"broker {broker_id}: {size_text(size)}; the mean is {size_text(mean)}"
                for broker_id, size in found.items()
            ],
            "Move replicas to the other brokers: odradek partition reassign TOPIC --to ID,ID,…",
        )


def retention_beyond_volume(facts: ClusterFacts) -> Iterator[Finding]:
    """`retention.bytes` of all replicas on a broker, or records that are kept without a limit on a filling volume."""
    assert facts.disks is not None
    assert facts.topic_settings is not None
    allowed: dict[int, int] = defaultdict(int)
    endless: dict[int, set[str]] = defaultdict(set)
    for broker_id, topic, _index in facts.disks.sizes:
        settings = facts.topic_settings.get(topic, {})
        limit = settings.get("retention.bytes", NO_LIMIT)
        if limit != NO_LIMIT:
            allowed[broker_id] += int(limit)
        elif settings.get("retention.ms") == NO_LIMIT and settings.get("cleanup.policy") == "delete":
            endless[broker_id].add(topic)
    volumes: dict[int, int] = defaultdict(int)
    used: dict[int, int] = defaultdict(int)
    for each in facts.disks.directories:
        volumes[each.broker_id] += max(each.total_bytes, 0)
        used[each.broker_id] += max(each.total_bytes - each.usable_bytes, 0)
    beyond = {
        broker_id: size
        for broker_id, size in sorted(allowed.items())
        if volumes[broker_id] and size > MOST_OF_A_VOLUME * volumes[broker_id]
    }
    if beyond:
        yield warning(
            "topics may keep more than the volumes hold (the sum of retention.bytes of all replicas)",
            [
                f"broker {broker_id}: {size_text(size)} allowed, volumes of {size_text(volumes[broker_id])}"
                for broker_id, size in beyond.items()
            ],
            "Lower retention.bytes of large topics: odradek config alter topic TOPIC --set retention.bytes=…",
        )
    growing = sorted(
        {
            topic
            for broker_id, topics in endless.items()
            if volumes[broker_id] and used[broker_id] > NEARLY_FULL_RATIO * volumes[broker_id]
            for topic in topics
        }
    )
    if growing:
        yield warning(
            "topics keep their records for ever, on volumes that are nearly full",
            growing,
            f"odradek config alter topic {growing[0]} --set retention.bytes=…, or compact it (cleanup.policy=compact)",
        )


def _place(directory: LogDirectory) -> str:
    return f"broker {directory.broker_id}, {directory.path}"
