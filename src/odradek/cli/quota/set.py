"""`odradek quota set`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import click

from odradek.admin.quotas import KEYS_BY_TYPE, Entity, entity_json, entity_text, value_text
from odradek.cli.client.options import cluster_options
from odradek.cli.framework.commands import command
from odradek.cli.framework.output import print_json, say
from odradek.cli.framework.parameter_types import PAIR
from odradek.cli.quota.entity import entity_options
from odradek.conventions.failures import did_you_mean

if TYPE_CHECKING:
    from odradek.admin.cluster import Cluster


@command(
    "set",
    examples=[
        ("what alice writes", "odradek quota set --user alice producer_byte_rate=1048576"),
        ("one application of alice", "odradek quota set --user alice --client-id etl request_percentage=50"),
        ("every other client id", "odradek quota set --client-id-default producer_byte_rate=524288"),
        ("new connections from one address", "odradek quota set --ip 10.0.0.7 connection_creation_rate=20"),
    ],
)
@click.argument("quotas", metavar="KEY=VALUE...", type=PAIR, nargs=-1, required=True)
@entity_options
@cluster_options
def set_quota(quotas: tuple[tuple[str, str], ...], entity: Entity, cluster: Cluster, as_json: bool) -> None:
    """Limit a user, a client id or an address.

    \b
    producer_byte_rate        bytes written in a second
    consumer_byte_rate        bytes read in a second
    request_percentage        share of the broker's time, in percent
    controller_mutation_rate  partitions created or removed in a second
    connection_creation_rate  connections opened in a second (--ip only)
    """
    from odradek.admin.quotas import alter_quotas

    if not entity:
        raise click.UsageError("name what to limit: --user, --client-id, --ip, or a default such as --user-default")
    changes = {key: read_value(key, text, entity) for key, text in quotas}
    alter_quotas(cluster, entity, changes)
    if as_json:
        print_json({"entity": entity_json(entity), "quotas": changes})
        return
    for key, value in changes.items():
        say(f"{entity_text(entity)}: {key} = {value_text(key, value)}")


def read_value(key: str, text: str, entity: Entity) -> float:
    known = KEYS_BY_TYPE[entity[0].type]
    if key not in known:
        hint = did_you_mean(key, known)
        raise click.UsageError(f"{entity[0].type} has no quota {key}; {hint or 'it has ' + ', '.join(known)}")
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        raise click.UsageError(
            f"{key}={text}: expected a number greater than 0 (`odradek quota remove` removes a quota)"
        )
    return value
