"""The throttle of a reassignment: a rate on brokers, and the replicas of topics that it holds for.

The settings are those of kafka-reassign-partitions, so that either tool can remove what the other has set.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from odradek.admin.broker_requests import TOPICS_PER_REQUEST, BrokerRequests, describe_resources, in_parts
from odradek.admin.errors import check
from odradek.admin.settings import Kind, alter_request, changes_to
from odradek.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsResponse

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from odradek.admin.partitions.plan import Move

    Values = Mapping[str, str | None]

DYNAMIC_TOPIC_CONFIG = 1  # the source of a setting
RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
LEADERS, FOLLOWERS = "leader.replication.throttled.replicas", "follower.replication.throttled.replicas"


def set_throttle(requests: BrokerRequests, moves: Sequence[Move], rate: int) -> None:
    """Throttle the copies from the present replicas to the new ones to `rate` bytes per second on each broker."""
    leaders: dict[str, list[str]] = defaultdict(list)
    followers: dict[str, list[str]] = defaultdict(list)
    brokers: set[int] = set()
    for move in moves:
        if move.adding:
            leaders[move.partition.topic] += [f"{move.partition.index}:{broker}" for broker in move.before]
            followers[move.partition.topic] += [f"{move.partition.index}:{broker}" for broker in move.adding]
            brokers.update(move.before, move.adding)
    # Brokers first: a broker that refuses its rate leaves the topics unchanged, and a rate alone throttles nothing.
    _alter_brokers(requests, brokers, dict.fromkeys(RATES, str(rate)))
    _alter_topics(
        requests,
        {topic: {LEADERS: ",".join(leaders[topic]), FOLLOWERS: ",".join(followers[topic])} for topic in leaders},
    )


def remove_throttle(requests: BrokerRequests, topics: Iterable[str], brokers: Iterable[int]) -> None:
    throttled = _throttled_topics(requests, topics)
    _alter_topics(requests, {topic: {LEADERS: None, FOLLOWERS: None} for topic in throttled})
    _alter_brokers(requests, brokers, dict.fromkeys(RATES))


def remove_throttle_of(requests: BrokerRequests, moves: Sequence[Move]) -> None:
    brokers = {broker for move in moves for broker in (*move.before, *move.after)}
    remove_throttle(requests, {move.partition.topic for move in moves}, brokers)


def _throttled_topics(requests: BrokerRequests, topics: Iterable[str]) -> list[str]:
    """Those of the topics that have a throttle, so that the others are not changed."""
    return [
        each.resource_name
        for each in describe_resources(requests, Kind.TOPIC, sorted(topics), [LEADERS, FOLLOWERS])
        if any(config.config_source == DYNAMIC_TOPIC_CONFIG for config in each.configs)
    ]


def _alter_topics(requests: BrokerRequests, changes: Mapping[str, Values]) -> None:
    for part in in_parts(changes.items(), TOPICS_PER_REQUEST):
        request = alter_request(Kind.TOPIC, {topic: changes_to(values) for topic, values in part})
        _check(requests.ask_controller(request, IncrementalAlterConfigsResponse, 1))


def _alter_brokers(requests: BrokerRequests, brokers: Iterable[int], values: Values) -> None:
    """Each broker is asked itself: it alone accepts its settings. Those that do not run copy nothing, and are left
    out."""
    known = requests.describe().brokers
    for broker_id in sorted(brokers):
        broker = known.get(broker_id)
        if broker is not None and not broker.is_fenced:
            request = alter_request(Kind.BROKER, {str(broker_id): changes_to(values)})
            _check(requests.ask(broker, request, IncrementalAlterConfigsResponse, 1))


def _check(answer: IncrementalAlterConfigsResponse) -> None:
    for each in answer.responses:
        subject = f"throttle of {Kind(each.resource_type).name.lower()} {each.resource_name}"
        check(each.error_code, each.error_message, subject, "AlterConfigs")
