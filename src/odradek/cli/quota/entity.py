"""Who a quota is set for: a user, a client id, both, or an address; or the default of one of them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import click

from odradek.cli.framework.parameter_types import NameType

F = TypeVar("F", bound=Callable[..., Any])

USER, CLIENT_ID, ADDRESS = "user", "client-id", "ip"
TYPES = (USER, CLIENT_ID, ADDRESS)
NOUNS = ((USER, "user", "users"), (CLIENT_ID, "client id", "client ids"), (ADDRESS, "address", "addresses"))
KEYS_BY_TYPE = {
    USER: ("producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate"),
    CLIENT_ID: ("producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate"),
    ADDRESS: ("connection_creation_rate",),
}


class Part(NamedTuple):
    """`name` is None for the default."""

    type: str
    name: str | None

    def __str__(self) -> str:
        return f"default {self.type}" if self.name is None else f"{self.type} {self.name}"


Entity = tuple[Part, ...]


def entity_text(entity: Entity) -> str:
    return ", ".join(map(str, entity))


def entity_json(entity: Entity) -> dict[str, str | None]:
    return {part.type: part.name for part in entity}


def sorted_entity(parts: list[Part]) -> Entity:
    return tuple(sorted(parts, key=lambda part: TYPES.index(part.type) if part.type in TYPES else len(TYPES)))


def entity_options(function: F) -> F:
    """`--user NAME`, `--user-default` and so on, passed to the command as `entity`."""

    @functools.wraps(function)
    def with_entity(*arguments: Any, **values: Any) -> Any:
        parts = []
        for type_ in TYPES:
            key = type_.replace("-", "_")
            name, is_default = values.pop(key), values.pop(f"{key}_default")
            if name is not None and is_default:
                raise click.UsageError(f"--{type_} and --{type_}-default exclude each other")
            if name is not None or is_default:
                parts.append(Part(type_, name))
        if len(parts) > 1 and any(part.type == ADDRESS for part in parts):
            raise click.UsageError("an address cannot be combined with a user or a client id")
        return function(*arguments, entity=tuple(parts), **values)

    decorated: Any = with_entity
    for type_, noun, plural in reversed(NOUNS):
        default_help = f"The default of all {plural} without a quota of their own."
        decorated = click.option(f"--{type_}-default", is_flag=True, help=default_help)(decorated)
        decorated = click.option(f"--{type_}", type=NameType(noun), metavar="NAME", help=f"This {noun}.")(decorated)
    return decorated  # type: ignore[no-any-return]  # click's decorators return Any
