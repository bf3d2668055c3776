"""`odradek quota list`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.admin.quotas import Entity, entity_json, entity_text, value_text
from odradek.cli.client.options import cluster_options
from odradek.cli.framework.commands import command
from odradek.cli.framework.output import print_columns, print_json, say
from odradek.cli.quota.entity import entity_options

if TYPE_CHECKING:
    from odradek.admin.cluster import Cluster


@command(
    "list",
    examples=[
        ("every quota", "odradek quota list"),
        ("those of alice, also for single client ids", "odradek quota list --user alice"),
    ],
)
@entity_options
@cluster_options
def list_quotas(entity: Entity, cluster: Cluster, as_json: bool) -> None:
    """List the quotas of the cluster, or those that name a user, a client id or an address."""
    from odradek.admin.quotas import read_quotas

    found = read_quotas(cluster, entity)
    if as_json:
        for each, quotas in found.items():
            print_json({"entity": entity_json(each), "quotas": quotas})
    elif found:
        print_columns(
            ["ENTITY", "QUOTA", "LIMIT"],
            [
                (entity_text(each), key, value_text(key, value))
                for each, quotas in found.items()
                for key, value in sorted(quotas.items())
            ],
        )
    else:
        say("no such quotas" if entity else "no quotas; `odradek quota set` sets one")
