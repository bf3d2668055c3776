"""Who a quota is set for: a user, a client id, both, or an address; or the default of one of them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import click

from odradek.admin.quotas import ADDRESS, CLIENT_ID, TYPES, USER, Part
from odradek.cli.framework.parameter_types import NameType

F = TypeVar("F", bound=Callable[..., Any])

NOUNS = ((USER, "user", "users"), (CLIENT_ID, "client id", "client ids"), (ADDRESS, "address", "addresses"))


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
