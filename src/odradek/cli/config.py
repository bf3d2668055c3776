"""`odradek config`: settings of topics, brokers and groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click
from click.shell_completion import CompletionItem

from odradek.admin import settings
from odradek.admin.wire import TIMEOUT_S
from odradek.cli.client import options as client
from odradek.cli.framework.commands import OptionalArgument, group
from odradek.cli.framework.options import flag, repeatable
from odradek.cli.framework.output import print_columns, print_json, say, strong
from odradek.cli.framework.parameter_types import SETTING, SETTING_NAME, TEXT
from odradek.conventions.failures import Failure, did_you_mean

if TYPE_CHECKING:
    from odradek.admin.cluster import Cluster

F = TypeVar("F", bound=Callable[..., Any])
Pairs = tuple[tuple[str, str], ...]

KINDS = {
    "topic": settings.Kind.TOPIC,
    "broker": settings.Kind.BROKER,
    settings.ALL_BROKERS: settings.Kind.BROKER,
    "group": settings.Kind.GROUP,
}
DONE = {"DELETE": " (default)", "APPEND": " (added)", "SUBTRACT": " (removed)"}


@group(
    ("what differs from the defaults on broker 0", "odradek config describe broker 0"),
    ("all brokers", "odradek config alter broker-default --set log.cleaner.backoff.ms=5000"),
    ("a topic", "odradek config alter topic pump --set retention.ms=1h"),
)
def config() -> None:
    """Show and change settings of topics, brokers and groups, as kafka-configs does."""


class Entity(NamedTuple):
    """A topic, a broker, a group, or the defaults of all brokers (`broker-default`), whose name is empty."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}".rstrip()

    @property
    def resource(self) -> tuple[settings.Kind, str]:
        return KINDS[self.kind], self.name


def complete_entities(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of topics or groups, by the TYPE before them."""
    kind = context.params.get("kind")
    if kind == "topic":
        return client.complete_topics(context, parameter, incomplete)
    return client.complete_groups(context, parameter, incomplete) if kind == "group" else []


def complete_settings(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Settings of the TYPE and NAME before them, which click has not parsed while an option lacks its value."""
    words = [*context.args, None, None]
    kind, name = context.params.get("kind") or words[0], context.params.get("name") or words[1]
    if kind == "topic":
        return client.complete_topic_settings(context, parameter, incomplete)
    return client.matching_names(
        context, incomplete, lambda cluster: known_settings(cluster, kind, name, client.COMPLETION_TIMEOUT_S)
    )


def complete_assignments(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """`NAME=` for each setting, to be followed by its value."""
    return [CompletionItem(f"{item.value}=") for item in complete_settings(context, parameter, incomplete)]


def entity_arguments(function: F) -> F:
    """`TYPE [NAME]`, passed to the command as `kind` and `name`."""
    name = click.argument(
        "name", metavar="NAME", required=False, cls=OptionalArgument, type=TEXT, shell_complete=complete_entities
    )
    kind = click.argument("kind", metavar="TYPE", type=click.Choice(["topic", "broker", "group", settings.ALL_BROKERS]))
    return kind(name(function))


def find_entity(cluster: Cluster, kind: str, name: str | None) -> Entity:
    """The entity that TYPE and NAME stand for. The name of the only broker may be left out."""
    if kind == settings.ALL_BROKERS:
        if name is not None:
            raise click.UsageError(f"{settings.ALL_BROKERS} takes no name: it applies to all brokers")
        return Entity(kind, "")
    brokers = broker_ids(cluster) if kind == "broker" else []
    if name:
        if kind == "topic":
            cluster.describe_topic(name)
        elif kind == "broker" and name not in brokers:
            noun = "broker" if len(brokers) == 1 else "brokers"
            raise Failure(f"there is no broker {name}; the cluster has {noun} {', '.join(brokers)}")
        return Entity(kind, name)
    if kind != "broker":
        raise click.UsageError(f"name the {kind}: `odradek {kind} list` shows those that exist")
    if len(brokers) > 1:
        raise click.UsageError(f"name a broker of {', '.join(brokers)}, or use {settings.ALL_BROKERS} for all")
    return Entity(kind, brokers[0])


def broker_ids(cluster: Cluster) -> list[str]:
    return [str(broker) for broker in sorted(cluster.requests.metadata([])[0])]


def known_settings(cluster: Cluster, kind: str | None, name: str | None, timeout_s: float = TIMEOUT_S) -> Sequence[str]:
    """The settings of this kind of entity. Those of all brokers are read from one of them."""
    if kind == "topic":
        return settings.TOPIC_SETTINGS
    if kind == "group":
        return settings.read_setting_names(cluster, settings.Kind.GROUP, name or "any", timeout_s)
    return settings.read_setting_names(cluster, settings.Kind.BROKER, name or broker_ids(cluster)[0], timeout_s)


@config.command(
    ("settings of a broker that differ from the defaults", "odradek config describe broker 0"),
    ("every setting of a topic", "odradek config describe topic pump --all"),
    ("settings that were changed for all brokers", "odradek config describe broker-default"),
    ("the session timeout of a group", "odradek config describe group audit --all"),
)
@entity_arguments
@flag("--all everything", "Show every setting, not only those that differ.")
@client.cluster_options
def describe(kind: str, name: str | None, everything: bool, cluster: Cluster, as_json: bool) -> None:
    """Show settings, and where their values come from.

    TYPE is topic, broker, broker-default (all brokers) or group. NAME is a topic, a broker id or a group.
    """
    entity = find_entity(cluster, kind, name)
    shown = [each for each in settings.read_settings(cluster, *entity.resource) if everything or not each.is_default]
    if as_json:
        for each in shown:
            facts = {"setting": each.name, **each.as_object(), "read_only": each.is_read_only}
            print_json({"type": entity.kind, "name": entity.name, **facts})
    elif not shown:
        say(f"{entity}: all settings have their default values")
    else:
        rows = []
        for each in shown:
            value = "(hidden)" if each.is_sensitive else "(none)" if each.value is None else each.value
            rows.append((each.name, value, each.source, "at start only" if each.is_read_only else "at run time"))
        say(strong(str(entity)))
        print_columns(["SETTING", "VALUE", "SOURCE", "CHANGEABLE"], rows)


def assignments_option(names: str, text: str) -> Callable[[F], F]:
    """A repeatable option with KEY=VALUE of a setting."""
    return repeatable(names, "KEY=VALUE", SETTING, text, shell_complete=complete_assignments)


@config.command(
    ("a topic", "odradek config alter topic pump --set retention.ms=1h"),
    ("a broker", "odradek config alter broker 0 --set log.cleaner.backoff.ms=5000"),
    ("all brokers", "odradek config alter broker-default --set message.max.bytes=2000000"),
    ("a group", "odradek config alter group audit --set consumer.session.timeout.ms=60000"),
    ("back to the default", "odradek config alter topic pump --delete retention.ms"),
)
@entity_arguments
@assignments_option("--set -s assignments", "Set a setting.")
@repeatable(
    "--delete -d deletions", "KEY", SETTING_NAME, "Return a setting to its default.", shell_complete=complete_settings
)
@assignments_option("--append additions", "Add a value to a setting that is a list.")
@assignments_option("--subtract removals", "Remove a value from a setting that is a list.")
@flag("--allow-unknown", "Store broker settings that the broker does not know.")
@client.cluster_options
def alter(
    *, kind: str, name: str | None, assignments: Pairs, deletions: tuple[str, ...], additions: Pairs, removals: Pairs,
    allow_unknown: bool, cluster: Cluster, as_json: bool,
) -> None:  # fmt: skip
    """Change settings while the cluster runs.

    TYPE is topic, broker, broker-default (all brokers) or group. NAME is a topic, a broker id or a group. A broker's
    own setting takes precedence over broker-default.
    """
    changes = [settings.Change(key, value, settings.Operation.SET) for key, value in assignments]
    changes += [settings.Change(key, None, settings.Operation.DELETE) for key in deletions]
    changes += [settings.Change(key, value, settings.Operation.APPEND) for key, value in additions]
    changes += [settings.Change(key, value, settings.Operation.SUBTRACT) for key, value in removals]
    if not changes:
        raise click.UsageError("nothing to alter: give --set, --delete, --append or --subtract")
    entity = find_entity(cluster, kind, name)
    known = known_settings(cluster, entity.kind, entity.name)
    names = [each.name for each in changes]
    if "broker" in entity.kind and not allow_unknown:
        check_known(names, known)
    with settings.suggesting_names(names, known):
        settings.alter_settings(cluster, *entity.resource, changes)
    if as_json:
        done = {"set": dict(assignments), "deleted": list(deletions)}
        done |= {"appended": dict(additions), "subtracted": dict(removals)}
        print_json({"type": entity.kind, "name": entity.name, **done})
        return
    for change in changes:
        value = f" = {change.value}" if change.value is not None else ""
        say(f"{entity}: {change.name}{value}{DONE.get(change.operation.name, '')}")


def check_known(names: Sequence[str], known: Sequence[str]) -> None:
    """Raise a Failure for a broker setting that the broker does not list: it would be stored, and have no effect."""
    for name in names:
        if name not in known:
            hint = f"{did_you_mean(name, known)} ".lstrip()
            raise Failure(f"there is no broker setting {name}; {hint}(--allow-unknown stores it anyway)")
