"""`odradek topic list`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from odradek.cli.client.options import cluster_options
from odradek.cli.framework.commands import command
from odradek.cli.framework.output import print_columns, print_json, say
from odradek.security.authorizer import Operation

if TYPE_CHECKING:
    from odradek.admin.cluster import Cluster


@command(
    "list",
    examples=[
        ("all topics but the internal ones", "odradek topic list"),
        ("names only, for a script", "odradek topic list --format json | jq -r .topic"),
    ],
)
@click.option("--internal", is_flag=True, help="Include internal topics, whose names start with __.")
@cluster_options
def list_topics(internal: bool, cluster: Cluster, as_json: bool) -> None:
    """List the topics of the cluster."""
    rows = [
        (each.name, len(each.partitions), len(each.partitions[0].replicas) if each.partitions else 0)
        for each in cluster.topics()
        if internal or not each.name.startswith("__")
    ]
    if as_json:
        for name, partitions, replicas in rows:
            print_json({"topic": name, "partitions": partitions, "replication_factor": replicas})
    elif rows:
        print_columns(["TOPIC", "PARTITIONS", "REPLICAS"], rows)
    elif cluster.may(Operation.ALTER):
        say("no topics; `odradek topic create NAME` creates one")
    else:
        say(f"no topics that {cluster.principal} may describe; an admin allows it with `odradek acl add`")
