"""`odradek config alter`: change settings of a topic, a broker, all brokers, or a group while the cluster runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from odradek.admin.settings import (
    TOPIC_SETTINGS,
    Change,
    Kind,
    Operation,
    alter_settings,
    read_setting_names,
    suggesting_names,
)
from odradek.cli.client.options import cluster_options
from odradek.cli.config.entity import Entity, broker_ids, entity_arguments, find_entity
from odradek.cli.config.setting_completion import complete_assignments, complete_settings
from odradek.cli.framework.commands import command
from odradek.cli.framework.output import print_json, say
from odradek.cli.framework.parameter_types import SETTING_NAME
from odradek.cli.framework.times import SETTING
from odradek.conventions.failures import Failure, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from odradek.admin.cluster import Cluster

Pairs = tuple[tuple[str, str], ...]


@command(
    examples=[
        ("a topic", "odradek config alter topic pump --set retention.ms=1h"),
        ("a broker", "odradek config alter broker 0 --set log.cleaner.backoff.ms=5000"),
        ("all brokers", "odradek config alter broker-default --set message.max.bytes=2000000"),
        ("a group", "odradek config alter group audit --set consumer.session.timeout.ms=60000"),
        ("back to the default", "odradek config alter topic pump --delete retention.ms"),
    ]
)
@entity_arguments
@click.option(
    "--set", "-s", "assignments", metavar="KEY=VALUE", type=SETTING, multiple=True, shell_complete=complete_assignments,
    help="Set a setting. Repeatable.",
)  # fmt: skip
@click.option(
    "--delete", "-d", "deletions", metavar="KEY", type=SETTING_NAME, multiple=True, shell_complete=complete_settings,
    help="Return a setting to its default. Repeatable.",
)  # fmt: skip
@click.option(
    "--append", "additions", metavar="KEY=VALUE", type=SETTING, multiple=True, shell_complete=complete_assignments,
    help="Add a value to a setting that is a list. Repeatable.",
)  # fmt: skip
@click.option(
    "--subtract", "removals", metavar="KEY=VALUE", type=SETTING, multiple=True, shell_complete=complete_assignments,
    help="Remove a value from a setting that is a list. Repeatable.",
)  # fmt: skip
@click.option("--allow-unknown", is_flag=True, help="Store broker settings that the broker does not know.")
@cluster_options
def alter(
    *,
    kind: str,
    name: str | None,
    assignments: Pairs,
    deletions: tuple[str, ...],
    additions: Pairs,
    removals: Pairs,
    allow_unknown: bool,
    cluster: Cluster,
    as_json: bool,
) -> None:
    """Change settings while the cluster runs.

    TYPE is topic, broker, broker-default (all brokers) or group. NAME is a topic, a broker id or a group. A broker's
    own setting takes precedence over broker-default.
    """
    changes = [Change(key, value, Operation.SET) for key, value in assignments]
    changes += [Change(key, None, Operation.DELETE) for key in deletions]
    changes += [Change(key, value, Operation.APPEND) for key, value in additions]
    changes += [Change(key, value, Operation.SUBTRACT) for key, value in removals]
    if not changes:
        raise click.UsageError("nothing to alter: give --set, --delete, --append or --subtract")
    entity = find_entity(cluster, kind, name)
    known = known_names(cluster, entity)
    if "broker" in entity.kind and not allow_unknown:
        check_known((each.name for each in changes), known)
    with suggesting_names([each.name for each in changes], known):
        alter_settings(cluster, *entity.resource, changes)
    if as_json:
        done = {"set": dict(assignments), "deleted": list(deletions)}
        done |= {"appended": dict(additions), "subtracted": dict(removals)}
        print_json({"type": entity.kind, "name": entity.name, **done})
        return
    verb = {Operation.DELETE: "default", Operation.APPEND: "added", Operation.SUBTRACT: "removed"}
    for change in changes:
        value = f" = {change.value}" if change.value is not None else ""
        suffix = f" ({verb[change.operation]})" if change.operation in verb else ""
        say(f"{entity}: {change.name}{value}{suffix}")


def known_names(cluster: Cluster, entity: Entity) -> Sequence[str]:
    """The settings of this kind of entity. Those of all brokers are read from one of them."""
    if entity.kind == "topic":
        return TOPIC_SETTINGS
    if entity.kind == "group":
        return read_setting_names(cluster, Kind.GROUP, entity.name)
    broker = entity.name or str(broker_ids(cluster)[0])
    return read_setting_names(cluster, Kind.BROKER, broker)


def check_known(names: Iterable[str], known: Sequence[str]) -> None:
    """Raise a Failure for a broker setting that the broker does not list: it would be stored, and have no effect."""
    for name in names:
        if name not in known:
            hint = did_you_mean(name, known)
            raise Failure(
                f"there is no broker setting {name}; {f'{hint} ' if hint else ''}(--allow-unknown stores it anyway)"
            )
