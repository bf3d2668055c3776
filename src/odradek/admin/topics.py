"""Topics: those that names or patterns choose; more partitions, fewer records, and their end."""

from __future__ import annotations

import fnmatch
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from odradek.admin.broker_requests import CHANGE_TIMEOUT_MS, TOPICS_PER_REQUEST, BrokerRequests, KnownBroker, in_parts
from odradek.admin.errors import broker_failure, check
from odradek.conventions.failures import Failure
from odradek.conventions.figures import count_text
from odradek.protocol.messages import create_partitions
from odradek.protocol.messages import delete_records as trimming
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse

if TYPE_CHECKING:
    from odradek.admin.cluster import Cluster

DELETE_RECORDS_TIMEOUT_S = 30.0
DELETE_TOPICS_VERSION = 5  # of Apache Kafka 2.7, the first with the broker's message
DELETE_RECORDS_VERSION = 1
MOST_NAMED = 5
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


def grow_topic(cluster: Cluster, name: str, partitions: int) -> None:
    topic = create_partitions.CreatePartitionsTopic(name=name, count=partitions, assignments=None)
    request = create_partitions.CreatePartitionsRequest(topics=[topic], timeout_ms=CHANGE_TIMEOUT_MS)
    (result,) = cluster.requests.ask_controller(request, create_partitions.CreatePartitionsResponse, 0).results
    check(result.error_code, result.error_message, f"topic {name}", "Alter")


def delete_topics(cluster: Cluster, names: Iterable[str]) -> dict[str, Failure | None]:
    """Why topics were not deleted; None for those that were."""
    results: dict[str, Failure | None] = {}
    for some in in_parts(names, TOPICS_PER_REQUEST):
        request = DeleteTopicsRequest(topic_names=some, timeout_ms=CHANGE_TIMEOUT_MS)
        for each in cluster.requests.ask_controller(request, DeleteTopicsResponse, DELETE_TOPICS_VERSION).responses:
            name, code = each.name or "", each.error_code
            results[name] = broker_failure(code, each.error_message, f"topic {name}", "Delete") if code else None
    return results


def delete_records(cluster: Cluster, topic: str, starts: Mapping[int, int]) -> list[Failure]:
    """Deletes the records before these offsets by partition. Why some partitions have refused it."""
    failures = []
    requests = BrokerRequests(cluster, DELETE_RECORDS_TIMEOUT_S)
    leaders: dict[KnownBroker | None, list[int]] = {}
    for each in cluster.describe_topic(topic).partitions:
        if each.id in starts:
            leaders.setdefault(each.leader, []).append(each.id)
    for leader, indexes in leaders.items():
        if leader is None:
            failures += [Failure(f"topic {topic}, partition {index} has no leader") for index in indexes]
            continue
        partitions = [trimming.DeleteRecordsPartition(partition_index=each, offset=starts[each]) for each in indexes]
        topics = [trimming.DeleteRecordsTopic(name=topic, partitions=partitions)]
        request = trimming.DeleteRecordsRequest(topics=topics, timeout_ms=round(DELETE_RECORDS_TIMEOUT_S * 800))
        try:
            (answer,) = requests.ask(leader, request, trimming.DeleteRecordsResponse, DELETE_RECORDS_VERSION).topics
        except Failure as failure:
            failures.append(failure)
            continue
        failures += [
            broker_failure(each.error_code, None, f"topic {topic}, partition {each.partition_index}", "Delete")
            for each in answer.partitions
            if each.error_code
        ]
    return failures
