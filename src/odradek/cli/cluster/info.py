"""`odradek cluster info` and `unregister`: the brokers, the controller and the state of the partitions."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import click

from odradek.admin.broker_requests import BrokerRequests, DescribedCluster
from odradek.admin.cluster_state import read_state, unregister_broker
from odradek.admin.groups import LIST_TIMEOUT_S, list_groups
from odradek.cli.client.options import cluster_options
from odradek.cli.cluster.status import NO_TOPICS, RESTRICTED
from odradek.cli.framework.commands import command
from odradek.cli.framework.options import confirm, yes_option
from odradek.cli.framework.output import print_columns, print_json, print_result, say, strong
from odradek.cli.framework.parameter_types import PARTITION
from odradek.conventions.failures import Failure
from odradek.conventions.figures import count_text
from odradek.security.authorizer import Operation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.admin.cluster import Cluster, TopicDescription

INTERNAL_PREFIX = "__"


@command(
    examples=[
        ("brokers, controller, topics, partitions", "odradek cluster info"),
        ("the cluster id, for a script", "odradek cluster info --format json | jq -r .cluster_id"),
    ]
)
@cluster_options
def info(cluster: Cluster, as_json: bool) -> None:
    """Show the brokers of a cluster, and the state of its partitions."""
    described = cluster.requests.describe()
    facts = cluster_facts(described, cluster.topics(), count_groups(cluster))
    if as_json:
        print_json(facts)
    else:
        print_facts(facts, is_restricted=not cluster.may(Operation.DESCRIBE))


def cluster_facts(
    described: DescribedCluster, topics: Sequence[TopicDescription], groups: int | None
) -> dict[str, Any]:
    """Internal topics are counted in both numbers."""
    partitions = [each for topic in topics for each in topic.partitions]
    internal = [topic for topic in topics if topic.name.startswith(INTERNAL_PREFIX)]
    leads = Counter(each.leader.broker_id for each in partitions if each.leader is not None)
    replicas = Counter(replica for each in partitions for replica in each.replicas)
    controller = described.controller_id
    return {
        "cluster_id": described.cluster_id,
        "controller": controller,
        "topics": len(topics),
        "internal_topics": len(internal),
        "partitions": len(partitions),
        "internal_partitions": sum(len(topic.partitions) for topic in internal),
        "partitions_without_leader": sum(each.leader is None for each in partitions),
        "under_replicated_partitions": sum(len(each.in_sync) < len(each.replicas) for each in partitions),
        "groups": groups,
        "brokers": [
            {
                "id": each.broker_id,
                "host": each.host,
                "port": each.port,
                "rack": each.rack,
                "controller": each.broker_id == controller,
                "leads": leads[each.broker_id],
                "replicas": replicas[each.broker_id],
            }
            for each in described.brokers.values()
            if not each.is_fenced
        ],
    }


def count_groups(cluster: Cluster) -> int | None:
    """None if the cluster does not list its groups."""
    try:
        return len(list_groups(BrokerRequests(cluster, LIST_TIMEOUT_S))[0])
    except Failure:
        return None


def with_internal(count: int, noun: str, internal: int) -> str:
    return count_text(count, noun) + (f" ({internal:,} internal)" if internal else "")


def print_facts(facts: dict[str, Any], *, is_restricted: bool) -> None:
    shown = [
        count_text(len(facts["brokers"]), "broker"),
        with_internal(facts["topics"], "topic", facts["internal_topics"]),
        with_internal(facts["partitions"], "partition", facts["internal_partitions"]),
    ]
    shown += [] if facts["groups"] is None else [count_text(facts["groups"], "group")]
    shown += [RESTRICTED] if is_restricted else []
    say(f"{strong(facts['cluster_id'] or 'cluster')}  {' · '.join(shown)}")
    problems = {"without a leader": "partitions_without_leader", "under-replicated": "under_replicated_partitions"}
    found = [f"{count_text(facts[key], 'partition')} {words}" for words, key in problems.items() if facts[key]]
    is_blind = is_restricted and not facts["partitions"]
    say(", ".join(found) or (NO_TOPICS if is_blind else "all partitions have a leader and all their replicas in sync"))
    say()
    rows = [
        (
            broker["id"],
            f"{broker['host']}:{broker['port']}",
            broker["rack"] or "-",
            broker["leads"],
            broker["replicas"],
            "controller" if broker["controller"] else "",
        )
        for broker in facts["brokers"]
    ]
    print_columns(["BROKER", "ADDRESS", "RACK", "LEADS", "REPLICAS", "ROLE"], rows)


@command(examples=[("a broker that is stopped and has no replicas", "odradek cluster unregister 3")])
@click.argument("broker_id", metavar="ID", type=PARTITION)
@yes_option
@cluster_options
def unregister(broker_id: int, yes: bool, cluster: Cluster, as_json: bool) -> None:
    """Remove a stopped broker from the metadata of the cluster.

    Move its replicas first, with `odradek partition reassign --drain ID`, and stop it.
    """
    requests = BrokerRequests(cluster)
    state = read_state(requests)
    broker = state.brokers.get(broker_id)
    if broker is None:
        raise Failure(f"broker {broker_id} is not registered; `odradek cluster status` shows the brokers")
    if not broker.is_fenced:
        raise Failure(f"broker {broker_id} is running: stop it first")
    replicas = sum(broker_id in each.replicas for each in state.partitions)
    if replicas:
        raise Failure(
            f"broker {broker_id} has {count_text(replicas, 'replica')}: move them with "
            f"`odradek partition reassign --drain {broker_id}` first"
        )
    confirm(f"Unregister broker {broker_id}?", yes, refusal="nothing was changed")
    unregister_broker(requests, broker_id)
    text = f"broker {broker_id} is not part of the cluster any more"
    print_result({"broker": broker_id, "unregistered": True}, text, as_json=as_json)
