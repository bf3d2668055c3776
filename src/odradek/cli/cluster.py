"""`odradek cluster`: brokers and their metrics, partitions that need attention, running reassignments."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from odradek.admin import cluster_state
from odradek.admin.broker_metrics import BrokerMetrics, MetricPoint, metrics_of_all
from odradek.admin.broker_requests import BrokerRequests, live
from odradek.admin.groups import LIST_TIMEOUT_S, list_groups
from odradek.admin.wire import TIMEOUT_S
from odradek.cli.client.options import cluster_options
from odradek.cli.framework import output
from odradek.cli.framework.commands import group
from odradek.cli.framework.options import confirm, flag, option, watch_options, yes_option
from odradek.cli.framework.parameter_types import PARTITION, POSITIVE, NumberType
from odradek.conventions.failures import Failure
from odradek.conventions.figures import count_text
from odradek.security.authorizer import Operation

if TYPE_CHECKING:
    from odradek.admin.cluster import Cluster


@group(
    ("brokers, controller, topics, partitions", "odradek cluster info"),
    ("partitions that need attention, redrawn every second", "odradek cluster status --watch"),
)
def cluster() -> None:
    """Show facts about a cluster."""


BUCKET = "_bucket"
COUNTER_SUFFIXES = ("_total", BUCKET, "_sum", "_count")
WATCH_TIMEOUT_S = 2.0  # for a broker to answer, while the state is watched
WAIT_INTERVAL_S = 0.25
SETTINGS_AGE_S = 30.0  # min.insync.replicas of topics is read again after this time
SHOWN_PARTITIONS = 10
RESTRICTED = "this user may not see other topics"  # without Describe on the cluster
NO_TOPICS = "no topics that this user may describe; an admin allows it with `odradek acl add`"
COUNTED = ("leads", "preferred", "replicas", "in_sync")
PROBLEMS = ("offline", "under min ISR", "under-replicated", "not on the preferred leader")


@cluster.command(
    ("brokers, controller, topics, partitions", "odradek cluster info"),
    ("the cluster id, for a script", "odradek cluster info --format json | jq -r .cluster_id"),
    short_help="Count the brokers, topics, partitions and groups of a cluster.",
)
@cluster_options
def info(cluster: Cluster, as_json: bool) -> None:
    """Show the brokers of a cluster, and the state of its partitions."""
    state = cluster_state.read_state(cluster.requests, asks_reassignments=False)
    groups: int | None = None  # unless the cluster lists them
    with contextlib.suppress(Failure):
        groups = len(list_groups(BrokerRequests(cluster, LIST_TIMEOUT_S))[0])
    facts = cluster_facts(state, groups)
    if as_json:
        output.print_json(facts)
    else:
        print_facts(facts, is_restricted=not cluster.may(Operation.DESCRIBE))


def cluster_facts(state: cluster_state.ClusterState, groups: int | None) -> dict[str, Any]:
    """Internal topics are counted in both numbers."""
    topics = {each.topic for each in state.partitions}
    internal = {topic for topic in topics if topic.startswith("__")}
    controller, counts = state.cluster.controller_id, state.counts()
    return {
        "cluster_id": state.cluster.cluster_id,
        "controller": controller,
        "topics": len(topics),
        "internal_topics": len(internal),
        "partitions": len(state.partitions),
        "internal_partitions": len(state.of_topics(internal)),
        "partitions_without_leader": sum(each.is_offline for each in state.partitions),
        "under_replicated_partitions": sum(each.is_under_replicated for each in state.partitions),
        "groups": groups,
        "brokers": [
            {
                "id": each.broker_id,
                **output.fields_of(each, "host port rack"),
                "controller": each.broker_id == controller,
                "leads": counts.leads[each.broker_id],
                "replicas": counts.replicas[each.broker_id],
            }
            for each in live(state.brokers)
        ],
    }


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
    output.say(f"{output.strong(facts['cluster_id'] or 'cluster')}  {' · '.join(shown)}")
    problems = {"without a leader": "partitions_without_leader", "under-replicated": "under_replicated_partitions"}
    found = [f"{count_text(facts[key], 'partition')} {words}" for words, key in problems.items() if facts[key]]
    is_blind = is_restricted and not facts["partitions"]
    well = NO_TOPICS if is_blind else "all partitions have a leader and all their replicas in sync"
    output.say(", ".join(found) or well)
    output.say()
    rows = []
    for each in facts["brokers"]:
        role = "controller" if each["controller"] else ""
        address = f"{each['host']}:{each['port']}"
        rows.append((each["id"], address, each["rack"] or "-", each["leads"], each["replicas"], role))
    output.print_columns(["BROKER", "ADDRESS", "RACK", "LEADS", "REPLICAS", "ROLE"], rows)


@cluster.command(
    ("the metrics of all brokers", "odradek cluster metrics"),
    ("requests and their errors, of broker 1", "odradek cluster metrics odradek_request --broker 1"),
    ("rates, every two seconds, until Ctrl-C", "odradek cluster metrics odradek_topic --watch --interval 2"),
    ("for a script", "odradek cluster metrics --format json | jq '.brokers[0].points'"),
    short_help="Show requests, bytes, lag and memory of brokers.",
)
@click.argument("prefixes", metavar="[NAME]…", nargs=-1)
@option("--broker broker_ids", "ID", int, "Only this broker; may be repeated.", multiple=True)
@flag("--buckets shows_buckets", "Show the buckets of histograms, too.")
@watch_options("Refresh the metrics, with counters as rates, until Ctrl-C.", "answers")
@cluster_options
def metrics(
    prefixes: tuple[str, ...], broker_ids: tuple[int, ...], shows_buckets: bool, is_watched: bool, interval: float,
    cluster: Cluster, as_json: bool,
) -> None:  # fmt: skip
    """Show the metrics of brokers of Odradek; NAME is the beginning of a metric's name.

    docs/metrics.md lists the metrics. The same are served over HTTP, at the address of metrics.listener.
    """
    requests = BrokerRequests(cluster)
    before: dict[int, BrokerMetrics] = {}

    def read() -> tuple[Any, list[str]]:
        nonlocal before
        found, missing = metrics_of_all(requests, prefixes)
        if broker_ids:
            found = [each for each in found if each.broker_id in broker_ids]
            missing = {broker_id: reason for broker_id, reason in missing.items() if broker_id in broker_ids}
        lines = metrics_lines(found, missing, before, shows_buckets=shows_buckets)
        before = {each.broker_id: each for each in found}
        return metrics_object(found, missing, shows_buckets=shows_buckets), lines

    if is_watched:
        output.watch(interval, read, as_json=as_json)
        return
    value, lines = read()
    output.print_result(value, "\n".join(lines), as_json=as_json)
    if not value["brokers"]:
        raise Failure("no broker returned its metrics: see above" if value["missing"] else "there is no such broker")


def metrics_lines(
    found: Sequence[BrokerMetrics], missing: Mapping[int, str], before: Mapping[int, BrokerMetrics], *,
    shows_buckets: bool,
) -> list[str]:  # fmt: skip
    """One line for each point. With the metrics of an earlier moment, counters are shown as rates per second."""
    lines: list[str] = []
    for metrics in found:
        lines += ["", output.strong(f"broker {metrics.broker_id}")]
        rows = list(_rows(metrics, before.get(metrics.broker_id), shows_buckets=shows_buckets))
        width = max((len(name) for name, _ in rows), default=0)
        lines += [f"{name:<{width}}  {value}" for name, value in rows]
    lines += [f"broker {broker_id}: {reason}" for broker_id, reason in missing.items()]
    return lines[1:] if lines and not lines[0] else lines


def _points(metrics: BrokerMetrics, shows_buckets: bool) -> list[dict[str, Any]]:
    shown = (each for each in metrics.points if shows_buckets or not each.name.endswith(BUCKET))
    return [{"name": each.name, "labels": dict(each.labels), "value": each.value} for each in shown]


def _rows(metrics: BrokerMetrics, earlier: BrokerMetrics | None, *, shows_buckets: bool) -> Iterator[tuple[str, str]]:
    known = {} if earlier is None else {_key(point): point.value for point in earlier.points}
    elapsed_s = 0.0 if earlier is None else (metrics.time_ms - earlier.time_ms) / 1000
    for point in metrics.points:
        if point.name.endswith(BUCKET) and not shows_buckets:
            continue
        value = number_text(point.value)
        if is_counter(point.name, metrics) and _key(point) in known and elapsed_s > 0:
            value += f"  {number_text(max(point.value - known[_key(point)], 0) / elapsed_s)}/s"
        yield _series_text(point), value


def is_counter(name: str, metrics: BrokerMetrics) -> bool:
    """Whether a point only grows: of a counter or a histogram."""
    return metrics.kinds.get(name, "histogram" if name.endswith(COUNTER_SUFFIXES) else "gauge") != "gauge"


def _key(point: MetricPoint) -> tuple[str, tuple[tuple[str, str], ...]]:
    return point.name, tuple(sorted(point.labels.items()))


def _series_text(point: MetricPoint) -> str:
    labels = ", ".join(f"{name}={value}" for name, value in point.labels.items())
    return f"{point.name}  {labels}" if labels else point.name


def number_text(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.6g}"


def metrics_object(
    found: Sequence[BrokerMetrics], missing: Mapping[int, str], *, shows_buckets: bool
) -> dict[str, Any]:
    return {
        "brokers": [
            {"broker": metrics.broker_id, "time_ms": metrics.time_ms, "points": _points(metrics, shows_buckets)}
            for metrics in found
        ],
        "missing": [{"broker": broker_id, "reason": reason} for broker_id, reason in missing.items()],
    }


@cluster.command(
    ("a broker that is stopped and has no replicas", "odradek cluster unregister 3"),
    short_help="Forget a broker that will not return.",
)
@click.argument("broker_id", metavar="ID", type=PARTITION)
@yes_option
@cluster_options
def unregister(broker_id: int, yes: bool, cluster: Cluster, as_json: bool) -> None:
    """Remove a stopped broker from the metadata of the cluster.

    Move its replicas first, with `odradek partition reassign --drain ID`, and stop it.
    """
    requests = BrokerRequests(cluster)
    state = cluster_state.read_state(requests)
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
    cluster_state.unregister_broker(requests, broker_id)
    text = f"broker {broker_id} is not part of the cluster any more"
    output.print_result({"broker": broker_id, "unregistered": True}, text, as_json=as_json)


@cluster.command(
    ("brokers, and partitions that need attention", "odradek cluster status"),
    ("redrawn every second, until Ctrl-C", "odradek cluster status --watch"),
    ("in a rolling restart: until replicas are in sync, at most 2 minutes", "odradek cluster status --wait 120"),
    ("after the start of a cluster", "odradek cluster status --wait 60 --brokers 3"),
    ("partitions without a leader, for a script", "odradek cluster status --format json | jq .offline"),
    short_help="Show brokers, partitions that need attention, reassignments.",
)
@watch_options("Refresh the state until Ctrl-C.", "states")
@option(
    "--wait wait_s", "SECONDS", POSITIVE,
    "Wait until all brokers run and all replicas are in sync; exit with 1 if they are not by then.",
)  # fmt: skip
@option(
    "--brokers least_brokers", "N", NumberType(1, 100_000),
    "With --wait: wait for at least N brokers, too, as after the start of a cluster.", default=1, show_default=False,
)  # fmt: skip
@flag("--all shows_all", "Show all partitions that need attention, not only the first 10.")
@cluster_options
def status(
    is_watched: bool, interval: float, wait_s: float | None, least_brokers: int, shows_all: bool, cluster: Cluster,
    as_json: bool,
) -> None:  # fmt: skip
    """Show brokers, partitions that need attention, and running reassignments.

    A partition is offline without a leader; under min ISR with fewer replicas in sync than min.insync.replicas (or than
    its replicas, if these are fewer), so that writes with acks=all are refused; under-replicated when a replica is not
    in sync; and not on the preferred leader when another replica than the first leads. A fenced broker is down, or does
    not take part.
    """
    if is_watched and wait_s is not None:
        raise click.UsageError("--watch and --wait exclude each other")
    limit = None if shows_all else SHOWN_PARTITIONS
    is_once = wait_s is None and not is_watched
    read = state_reader(BrokerRequests(cluster, TIMEOUT_S if is_once else WATCH_TIMEOUT_S))
    if is_watched:
        output.watch(interval, lambda: state_output(read(), limit), as_json=as_json)
        return
    state = read() if wait_s is None else wait_until_healthy(read, wait_s, least_brokers)
    value, lines = state_output(state, limit)
    output.print_result(value, "\n".join(lines), as_json=as_json)
    if wait_s is None:
        return
    if len(state.brokers) < least_brokers:
        raise Failure(f"the cluster has {len(state.brokers)} of {least_brokers} brokers after {wait_s:g} s")
    if not state.is_healthy:
        raise Failure(f"the cluster is not healthy after {wait_s:g} s: see above")


def state_output(state: cluster_state.ClusterState, limit: int | None) -> tuple[dict[str, Any], list[str]]:
    return status_object(state), status_lines(state, limit)


def wait_until_healthy(
    read: Callable[[], cluster_state.ClusterState], wait_s: float, least_brokers: int
) -> cluster_state.ClusterState:
    """The first healthy state with so many brokers, or the one at the end of the time."""
    deadline = time.monotonic() + wait_s
    while True:
        try:
            state = read()
        except Failure:
            if time.monotonic() >= deadline:
                raise
        else:
            if (state.is_healthy and len(state.brokers) >= least_brokers) or time.monotonic() >= deadline:
                return state
        time.sleep(WAIT_INTERVAL_S)


def state_reader(requests: BrokerRequests) -> Callable[[], cluster_state.ClusterState]:
    """Reads the state again and again; settings of topics only after a time."""
    min_in_sync, controllers = cluster_state.MinInSync(requests), cluster_state.ControllerLookup(requests)
    settings_read_at = time.monotonic()

    def read() -> cluster_state.ClusterState:
        nonlocal settings_read_at
        if time.monotonic() - settings_read_at > SETTINGS_AGE_S:
            min_in_sync.forget()
            settings_read_at = time.monotonic()
        return cluster_state.read_state(requests, min_in_sync, controllers, may_lack_reassignments=True)

    return read


def status_object(state: cluster_state.ClusterState) -> dict[str, Any]:
    counts = state.counts()

    def objects(condition: str) -> list[dict[str, Any]]:
        return [partition_object(each) for each in state.partitions if getattr(each, condition)]

    return {
        "cluster_id": state.cluster.cluster_id,
        "controller": state.cluster.controller_id,
        "healthy": state.is_healthy,
        "brokers": [
            {
                "id": broker.broker_id,
                **output.fields_of(broker, "host port rack"),
                "state": "fenced" if broker.is_fenced else "running",
                "controller": broker.broker_id == state.cluster.controller_id,
                **{name: getattr(counts, name)[broker.broker_id] for name in COUNTED},
            }
            for broker in state.brokers.values()
        ],
        "topics": len({each.topic for each in state.partitions}),
        "partitions": len(state.partitions),
        "offline": objects("is_offline"),
        "under_min_isr": objects("is_under_min_in_sync"),
        "under_replicated": objects("is_under_replicated"),
        "not_on_preferred_leader": objects("has_other_leader"),
        "reassignments": objects("is_reassigned") if state.knows_reassignments else None,
    }


def partition_object(partition: cluster_state.PartitionState) -> dict[str, Any]:
    leader = None if partition.is_offline else partition.leader
    names = "replicas in_sync min_in_sync" + (" adding removing" if partition.is_reassigned else "")
    place = {"topic": partition.topic, "partition": partition.index, "leader": leader}
    return {**place, **output.fields_of(partition, names)}


def status_lines(state: cluster_state.ClusterState, shown_partitions: int | None = SHOWN_PARTITIONS) -> list[str]:
    """`shown_partitions` limits each table of partitions; None shows all."""
    topics = len({each.topic for each in state.partitions})
    running = sum(not broker.is_fenced for broker in state.brokers.values())
    total = len(state.brokers)
    brokers = count_text(total, "broker") if running == total else f"{running} of {count_text(total, 'broker')} running"
    facts = [brokers, count_text(topics, "topic"), count_text(len(state.partitions), "partition")]
    facts += [RESTRICTED] if state.is_restricted else []
    lines = [f"{output.strong(state.cluster.cluster_id or 'cluster')}  {' · '.join(facts)}", _summary(state), ""]
    lines += _broker_lines(state)
    lines += _problem_lines([each for each in state.partitions if each.problems], shown_partitions)
    if not state.knows_reassignments:
        reason = "this user lacks Describe on the cluster" if state.is_restricted else "no controller answers"
        lines += ["", click.style(f"running reassignments are not known: {reason}", fg="red")]
    lines += _reassignment_lines([each for each in state.partitions if each.is_reassigned], shown_partitions)
    return lines


def _summary(state: cluster_state.ClusterState) -> str:
    counts = [(name, sum(name in each.problems for each in state.partitions)) for name in PROBLEMS]
    found = [
        click.style(f"{count_text(count, 'partition')} {name}", fg="yellow" if name == PROBLEMS[-1] else "red")
        for name, count in counts
        if count
    ]
    moving = sum(each.is_reassigned for each in state.partitions)
    found += [f"{count_text(moving, 'partition')} being reassigned"] if moving else []
    if found or (state.is_restricted and not state.partitions):
        return ", ".join(found) or NO_TOPICS
    return click.style("all partitions have a leader and all their replicas in sync", fg="green")


def _broker_lines(state: cluster_state.ClusterState) -> list[str]:
    counts = state.counts()
    rows = []
    for broker_id in sorted({*state.brokers, *counts.replicas}):
        broker = state.brokers.get(broker_id)
        known = ["-", "-", "not registered"]
        if broker is not None:
            known = [f"{broker.host}:{broker.port}", broker.rack or "-", "fenced" if broker.is_fenced else "running"]
        numbers = (counts.leads[broker_id], counts.replicas[broker_id], counts.in_sync[broker_id])
        role = "controller" if broker_id == state.cluster.controller_id else ""
        rows.append((broker_id, *known, *numbers, role))
    return output.column_lines(["BROKER", "ADDRESS", "RACK", "STATE", "LEADS", "REPLICAS", "IN SYNC", "ROLE"], rows)


def _problem_lines(partitions: list[cluster_state.PartitionState], limit: int | None) -> list[str]:
    if not partitions:
        return []
    # The worst first.
    partitions = sorted(partitions, key=lambda each: (PROBLEMS.index(each.problems[0]), each.topic, each.index))
    rows = []
    for each in partitions[:limit]:
        leader = "none" if each.is_offline else str(each.leader)
        brokers = (leader, output.joined(each.replicas), output.joined(each.in_sync))
        rows.append((each.name, *brokers, each.min_in_sync, ", ".join(each.problems)))
    titles = ["PARTITION", "LEADER", "REPLICAS", "IN SYNC", "MIN ISR", "PROBLEM"]
    return ["", *output.column_lines(titles, rows), *_rest(len(partitions), limit)]


def _reassignment_lines(partitions: list[cluster_state.PartitionState], limit: int | None) -> list[str]:
    if not partitions:
        return []
    rows = [
        (each.name, output.joined(each.target), output.joined(each.adding), output.joined(each.removing))
        for each in partitions[:limit]
    ]
    return ["", *output.column_lines(["REASSIGNED", "TO", "ADDING", "REMOVING"], rows), *_rest(len(partitions), limit)]


def _rest(count: int, limit: int | None) -> list[str]:
    return [] if limit is None or count <= limit else [output.faint(f"and {count - limit:,} more; --all shows them")]
