"""`odradek cluster unregister`: forget a broker that will not return."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from odradek.admin.broker_requests import BrokerRequests, check
from odradek.admin.cluster_state import read_state
from odradek.cli.client.options import cluster_options
from odradek.cli.framework.commands import command
from odradek.cli.framework.confirmation import confirm, yes_option
from odradek.cli.framework.output import print_json, say
from odradek.cli.framework.parameter_types import PARTITION
from odradek.conventions.failures import Failure
from odradek.conventions.figures import count_text
from odradek.protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse

if TYPE_CHECKING:
    from odradek.admin.cluster import Cluster


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
    answer = requests.ask_controller(UnregisterBrokerRequest(broker_id=broker_id), UnregisterBrokerResponse, 0)
    check(answer.error_code, answer.error_message, f"broker {broker_id}", "Alter")
    if as_json:
        print_json({"broker": broker_id, "unregistered": True})
    else:
        say(f"broker {broker_id} is not part of the cluster any more")
