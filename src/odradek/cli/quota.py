"""`odradek quota`: the quotas of users, client ids and addresses."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from odradek.admin import quotas
from odradek.cli.client.options import cluster_options
from odradek.cli.framework.commands import group
from odradek.cli.framework.options import flag, option, wrapped
from odradek.cli.framework.output import print_list, print_result
from odradek.cli.framework.parameter_types import PAIR, SETTING_NAME, name_type
from odradek.conventions.failures import Failure, did_you_mean

if TYPE_CHECKING:
    from odradek.admin.cluster import Cluster

F = TypeVar("F", bound=Callable[..., Any])
NOUNS = (
    (quotas.USER, "user", "users"),
    (quotas.CLIENT_ID, "client id", "client ids"),
    (quotas.ADDRESS, "address", "addresses"),
)


@group(
    ("1 MiB/s for what alice writes to each broker", "odradek quota set --user alice producer_byte_rate=1048576"),
    ("a default for every client id", "odradek quota set --client-id-default consumer_byte_rate=10485760"),
    ("10 new connections a second from each address", "odradek quota set --ip-default connection_creation_rate=10"),
    ("every quota", "odradek quota list"),
    name="quota",
)
def quota() -> None:
    """Set, list and remove the quotas of users, client ids and addresses.

    A quota applies to each broker. Of several that match a client, the most specific applies: of a user and client id,
    then of a user, then of a client id; a name comes before a default.
    """


def entity_options(function: F) -> F:
    """`--user NAME`, `--user-default` and so on, passed to the command as `entity`."""

    def with_entity(*arguments: Any, **values: Any) -> Any:
        parts = []
        for type_ in quotas.TYPES:
            key = type_.replace("-", "_")
            name, is_default = values.pop(key), values.pop(f"{key}_default")
            if name is not None and is_default:
                raise click.UsageError(f"--{type_} and --{type_}-default exclude each other")
            if name is not None or is_default:
                parts.append(quotas.Part(type_, name))
        if len(parts) > 1 and any(part.type == quotas.ADDRESS for part in parts):
            raise click.UsageError("an address cannot be combined with a user or a client id")
        return function(*arguments, entity=tuple(parts), **values)

    options: list[Callable[[Any], Any]] = []
    for type_, noun, plural in NOUNS:
        options.append(option(f"--{type_}", "NAME", name_type(noun), f"This {noun}."))
        options.append(flag(f"--{type_}-default", f"The default of all {plural} without a quota of their own."))
    return wrapped(function, with_entity, *options)


@quota.command(
    ("what alice writes", "odradek quota set --user alice producer_byte_rate=1048576"),
    ("one application of alice", "odradek quota set --user alice --client-id etl request_percentage=50"),
    ("every other client id", "odradek quota set --client-id-default producer_byte_rate=524288"),
    ("new connections from one address", "odradek quota set --ip 10.0.0.7 connection_creation_rate=20"),
    name="set",
)
@click.argument("limits", metavar="KEY=VALUE...", type=PAIR, nargs=-1, required=True)
@entity_options
@cluster_options
def set_quota(limits: tuple[tuple[str, str], ...], entity: quotas.Entity, cluster: Cluster, as_json: bool) -> None:
    """Limit a user, a client id or an address.

    \b
    producer_byte_rate        bytes written in a second
    consumer_byte_rate        bytes read in a second
    request_percentage        share of the broker's time, in percent
    controller_mutation_rate  partitions created or removed in a second
    connection_creation_rate  connections opened in a second (--ip only)
    """
    if not entity:
        raise click.UsageError("name what to limit: --user, --client-id, --ip, or a default such as --user-default")
    changes = {key: read_value(key, text, entity) for key, text in limits}
    quotas.alter_quotas(cluster, entity, changes)
    lines = [f"{quotas.entity_text(entity)}: {key} = {quotas.value_text(key, value)}" for key, value in changes.items()]
    print_result({"entity": quotas.entity_json(entity), "quotas": changes}, "\n".join(lines), as_json=as_json)


def read_value(key: str, text: str, entity: quotas.Entity) -> float:
    known = quotas.KEYS_BY_TYPE[entity[0].type]
    if key not in known:
        hint = did_you_mean(key, known)
        raise click.UsageError(f"{entity[0].type} has no quota {key}; {hint or 'it has ' + ', '.join(known)}")
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        expected = "expected a number greater than 0 (`odradek quota remove` removes a quota)"
        raise click.UsageError(f"{key}={text}: {expected}")
    return value


@quota.command(
    ("every quota", "odradek quota list"),
    ("those of alice, also for single client ids", "odradek quota list --user alice"),
    name="list",
    short_help="List the quotas of the cluster.",
)
@entity_options
@cluster_options
def list_quotas(entity: quotas.Entity, cluster: Cluster, as_json: bool) -> None:
    """List the quotas of the cluster, or those that name a user, a client id or an address."""
    found = quotas.read_quotas(cluster, entity)
    rows = [
        (quotas.entity_text(each), key, quotas.value_text(key, value))
        for each, limits in found.items()
        for key, value in sorted(limits.items())
    ]
    objects = [{"entity": quotas.entity_json(each), "quotas": limits} for each, limits in found.items()]
    nothing = "no such quotas" if entity else "no quotas; `odradek quota set` sets one"
    print_list(objects, ["ENTITY", "QUOTA", "LIMIT"], rows, otherwise=nothing, as_json=as_json)


@quota.command(
    ("all quotas of alice", "odradek quota remove --user alice"),
    ("one of them", "odradek quota remove --user alice producer_byte_rate"),
    name="remove",
    short_help="Remove quotas of a user, a client id or an address.",
)
@click.argument("keys", metavar="[KEY...]", type=SETTING_NAME, nargs=-1)
@entity_options
@cluster_options
def remove(keys: tuple[str, ...], entity: quotas.Entity, cluster: Cluster, as_json: bool) -> None:
    """Remove quotas of a user, a client id or an address: those that are named, or all.

    Quotas of a user together with a client id are not those of the user: name both to remove them.
    """
    if not entity:
        raise click.UsageError("name whose quotas to remove: --user, --client-id, --ip, or a default")
    present = quotas.read_quotas(cluster, entity, is_exact=True).get(entity, {})
    if not present:
        raise Failure(f"{quotas.entity_text(entity)} has no quotas; `odradek quota list` shows those that exist")
    for key in keys:
        if key not in present:
            raise Failure(f"{quotas.entity_text(entity)} has no quota {key}; it has {', '.join(sorted(present))}")
    removed = sorted(set(keys) or present)
    quotas.alter_quotas(cluster, entity, dict.fromkeys(removed))
    lines = [f"{quotas.entity_text(entity)}: {key} removed" for key in removed]
    print_result({"entity": quotas.entity_json(entity), "removed": removed}, "\n".join(lines), as_json=as_json)
