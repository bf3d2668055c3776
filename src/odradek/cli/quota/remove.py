"""`odradek quota remove`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from odradek.admin.quotas import Entity, entity_json, entity_text
from odradek.cli.client.options import cluster_options
from odradek.cli.framework.commands import command
from odradek.cli.framework.output import print_json, say
from odradek.cli.framework.parameter_types import SETTING_NAME
from odradek.cli.quota.entity import entity_options
from odradek.conventions.failures import Failure

if TYPE_CHECKING:
    from odradek.admin.cluster import Cluster


@command(
    "remove",
    examples=[
        ("all quotas of alice", "odradek quota remove --user alice"),
        ("one of them", "odradek quota remove --user alice producer_byte_rate"),
    ],
)
@click.argument("keys", metavar="[KEY...]", type=SETTING_NAME, nargs=-1)
@entity_options
@cluster_options
def remove(keys: tuple[str, ...], entity: Entity, cluster: Cluster, as_json: bool) -> None:
    """Remove quotas of a user, a client id or an address: those that are named, or all.

    Quotas of a user together with a client id are not those of the user: name both to remove them.
    """
    from odradek.admin.quotas import alter_quotas, read_quotas

    if not entity:
        raise click.UsageError("name whose quotas to remove: --user, --client-id, --ip, or a default")
    present = read_quotas(cluster, entity, is_exact=True).get(entity, {})
    if not present:
        raise Failure(f"{entity_text(entity)} has no quotas; `odradek quota list` shows those that exist")
    for key in keys:
        if key not in present:
            raise Failure(f"{entity_text(entity)} has no quota {key}; it has {', '.join(sorted(present))}")
    removed = sorted(set(keys) or present)
    alter_quotas(cluster, entity, dict.fromkeys(removed))
    if as_json:
        print_json({"entity": entity_json(entity), "removed": removed})
        return
    for key in removed:
        say(f"{entity_text(entity)}: {key} removed")
