"""Rules on brokers: whether they answer, where they advertise themselves, whether they are of one version."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from odradek.admin.doctor.finding import problem, warning
from odradek.conventions.addresses import is_loopback

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.admin.cluster_state import ClusterState
    from odradek.admin.doctor.cluster.facts import ClusterFacts
    from odradek.admin.doctor.finding import Finding


def no_broker_answers(facts: ClusterFacts) -> Iterator[Finding]:
    if facts.unreachable is not None:
        yield problem(
            "no broker answers",
            [facts.unreachable],
            "Check the address, and that a broker runs there: odradek cluster info -b HOST:PORT",
        )


def unreachable(facts: ClusterFacts) -> Iterator[Finding]:
    """Fenced brokers have a finding of their own."""
    assert facts.contacts is not None
    assert facts.state is not None
    fenced = {broker.broker_id for broker in facts.state.brokers.values() if broker.is_fenced}
    silent = [each for each in facts.contacts if each.error is not None and each.broker_id not in fenced]
    if silent:
        yield problem(
            "brokers do not answer at the addresses that they advertise",
            [f"{each.place}: {each.error}" for each in silent],
            "Start the broker, open the port, or correct advertised.listeners; then: odradek cluster status",
        )


def fenced_brokers(facts: ClusterFacts) -> Iterator[Finding]:
    assert facts.state is not None
    fenced = {each.broker_id: each for each in facts.state.brokers.values() if each.is_fenced}
    running = [each.broker_id for each in facts.contacts or () if each.error is None and each.broker_id in fenced]
    unreached = [fenced.pop(broker_id) for broker_id in running]
    if unreached:
        yield problem(
            "brokers run and are fenced: the controller does not reach them",
            [f"broker {each.broker_id} at {each.host}:{each.port}" for each in unreached],
            "Correct advertised.listeners of the listener in inter.broker.listener.name, or the network from the "
            "controller to that address; the controller's log names it",
        )
    if fenced:
        first = min(fenced)
        yield problem(
            "brokers are fenced: they are down, or do not take part in the cluster",
            [f"broker {each.broker_id} at {each.host}:{each.port}" for each in fenced.values()],
            f"Start it again; if it runs, correct its advertised.listeners. If it will not return, move its replicas "
            f"and forget it: odradek partition reassign --drain {first} --wait && odradek cluster unregister {first}",
        )


def no_controller(facts: ClusterFacts) -> Iterator[Finding]:
    assert facts.state is not None
    controller = facts.state.cluster.controller_id
    if not facts.state.cluster.knows_controller:
        if not facts.state.knows_reassignments:
            yield problem(
                "no controller answers: topics cannot be changed and no leaders are elected",
                [],
                "Check the KRaft controllers and their logs; then: odradek cluster status --watch",
            )
    elif controller is None:
        yield problem(
            "the cluster has no controller: topics cannot be changed and no leaders are elected",
            [],
            "Check ZooKeeper or the KRaft controllers, and the brokers' logs; then: odradek cluster status --watch",
        )
    elif not facts.state.knows_reassignments:
        yield problem(
            f"the controller, {_controller_name(facts.state)}, does not answer",
            [_controller_name(facts.state)],
            "Read its log, and restart it if it hangs; then: odradek cluster status --watch",
        )


def _controller_name(state: ClusterState) -> str:
    """A controller of Apache Kafka may be a node that is no broker."""
    controller = state.cluster.controller_id
    return f"{'broker' if controller in state.brokers else 'node'} {controller}"


def advertised_addresses(facts: ClusterFacts) -> Iterator[Finding]:
    """A loopback address leads a client on another machine to itself."""
    assert facts.contacts is not None
    loopback = [each for each in facts.contacts if any(map(is_loopback, each.addresses))]
    if loopback and facts.from_elsewhere:
        yield problem(
            "brokers advertise addresses of the loopback interface, which lead other machines to themselves",
            [f"{each.place} ({', '.join(each.addresses)})" for each in loopback],
            "Set advertised.listeners to a name that clients resolve, and restart the broker",
        )
    by_address = defaultdict(list)
    for each in facts.contacts:
        by_address[each.host, each.port].append(each.broker_id)
    shared = {address: ids for address, ids in by_address.items() if len(ids) > 1}
    if shared:
        yield problem(
            "several brokers advertise the same address, so that clients reach the wrong one",
            [f"{host}:{port}: brokers {', '.join(map(str, ids))}" for (host, port), ids in shared.items()],
            "Give each broker advertised.listeners of its own, and restart it",
        )


def mixed_versions(facts: ClusterFacts) -> Iterator[Finding]:
    """Brokers of one version serve the same APIs in the same versions, at the same feature levels."""
    assert facts.contacts is not None
    answered = [each for each in facts.contacts if each.error is None and each.apis]
    by_apis = defaultdict(list)
    for each in answered:
        by_apis[tuple(sorted(each.apis.items()))].append(each.broker_id)
    if len(by_apis) > 1:
        yield warning(
            "brokers serve different versions of the Kafka APIs, as in the middle of an upgrade",
            [f"brokers {', '.join(map(str, ids))}: {len(apis)} APIs" for apis, ids in by_apis.items()],
            "Finish the upgrade: restart the remaining brokers with the new version, one after another "
            "(odradek cluster status --wait 120 between them)",
        )
    by_level = defaultdict(list)
    for each in answered:
        by_level[tuple(sorted(each.features.items()))].append(each.broker_id)
    if len(by_level) > 1:
        yield warning(
            "brokers report different feature levels",
            [
                f"brokers {', '.join(map(str, ids))}: {', '.join(f'{name}={level}' for name, level in levels)}"
                for levels, ids in by_level.items()
            ],
            "Run the command again in a minute; if the levels stay different, restart the brokers that are behind",
        )
