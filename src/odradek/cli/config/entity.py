"""The entities that have settings: a topic, a broker, all brokers (`broker-default`), or a consumer group."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from odradek.admin.settings import ALL_BROKERS, Kind
from odradek.cli.client.name_completion import complete_groups, complete_topics
from odradek.cli.framework.commands import OptionalArgument
from odradek.cli.framework.parameter_types import TEXT
from odradek.conventions.failures import Failure

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from odradek.admin.cluster import Cluster

F = TypeVar("F", bound=Callable[..., Any])

KINDS = {"topic": Kind.TOPIC, "broker": Kind.BROKER, ALL_BROKERS: Kind.BROKER, "group": Kind.GROUP}


@dataclass(frozen=True, slots=True)
class Entity:
    """`name` is empty for the defaults of all brokers."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}".rstrip()

    @property
    def resource(self) -> tuple[Kind, str]:
        return KINDS[self.kind], self.name


def complete_entities(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of the kind that stands before: topics or groups."""
    kind = context.params.get("kind")
    if kind == "topic":
        return complete_topics(context, parameter, incomplete)
    return complete_groups(context, parameter, incomplete) if kind == "group" else []


def entity_arguments(function: F) -> F:
    """`TYPE [NAME]`, passed to the command as `kind` and `name`."""
    name = click.argument(
        "name", metavar="NAME", required=False, cls=OptionalArgument, type=TEXT, shell_complete=complete_entities
    )
    kind = click.argument("kind", metavar="TYPE", type=click.Choice(["topic", "broker", "group", ALL_BROKERS]))
    return kind(name(function))


def find_entity(cluster: Cluster, kind: str, name: str | None) -> Entity:
    """The entity that TYPE and NAME stand for. The name of the only broker may be left out."""
    if kind == ALL_BROKERS:
        if name is not None:
            raise click.UsageError(f"{ALL_BROKERS} takes no name: it applies to all brokers")
        return Entity(kind, "")
    if name:
        if kind == "topic":
            cluster.describe_topic(name)
        elif kind == "broker":
            check_broker(name, broker_ids(cluster))
        return Entity(kind, name)
    if kind != "broker":
        raise click.UsageError(f"name the {kind}: `odradek {kind} list` shows those that exist")
    brokers = broker_ids(cluster)
    if len(brokers) > 1:
        raise click.UsageError(f"name a broker of {', '.join(map(str, brokers))}, or use {ALL_BROKERS} for all")
    return Entity(kind, str(brokers[0]))


def check_broker(name: str, brokers: list[int]) -> None:
    """Failure for an id that no broker has."""
    ids = [str(broker) for broker in brokers]
    if name not in ids:
        noun = "broker" if len(ids) == 1 else "brokers"
        raise Failure(f"there is no broker {name}; the cluster has {noun} {', '.join(ids)}")


def broker_ids(cluster: Cluster) -> list[int]:
    return sorted(cluster.requests.metadata([])[0])
