"""Options that the commands for access control lists share; their names are those of kafka-acls."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import click

from odradek.admin.acls.rules import OPERATIONS, Selection
from odradek.cli.client.name_completion import complete_groups, complete_topics, complete_transactional_ids
from odradek.cli.framework.parameter_types import GROUP_NAME, TEXT, TOPIC_NAME, TRANSACTIONAL_ID
from odradek.security.acls.bindings import PatternType

F = TypeVar("F", bound=Callable[..., Any])


class PrincipalType(click.ParamType):  # type: ignore[type-arg]  # generic in newer versions of click only
    """`User:alice`. A name without a type is taken for a mistake, as in kafka-acls."""

    name = "principal"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = str(TEXT.convert(value, param, ctx))
        kind, colon, name = text.partition(":")
        if not (kind and colon and name):
            self.fail(f"'{text}' is not TYPE:NAME, such as User:alice or User:*", param, ctx)
        return text


PRINCIPAL = PrincipalType()
OPERATION = click.Choice(list(OPERATIONS), case_sensitive=False)


def resource_options(function: F) -> F:
    """`--topic`, `--group`, `--transactional-id` and `--cluster`, passed to the command as `selection`."""

    @functools.wraps(function)
    def with_selection(
        *arguments: Any,
        topics: tuple[str, ...],
        groups: tuple[str, ...],
        transactional_ids: tuple[str, ...],
        on_cluster: bool,
        **rest: Any,
    ) -> Any:
        return function(*arguments, selection=Selection(topics, groups, transactional_ids, on_cluster), **rest)

    decorated = click.option("--cluster", "on_cluster", is_flag=True, help="The cluster itself.")(with_selection)
    decorated = click.option(
        "--transactional-id", "transactional_ids", metavar="ID", type=TRANSACTIONAL_ID, multiple=True,
        shell_complete=complete_transactional_ids, help="A transactional id, or *. Repeatable.",
    )(decorated)  # fmt: skip
    decorated = click.option(
        "--group", "groups", metavar="GROUP", type=GROUP_NAME, multiple=True, shell_complete=complete_groups,
        help="A group, or *. Repeatable.",
    )(decorated)  # fmt: skip
    return click.option(  # type: ignore[return-value]  # a command keeps its type
        "--topic", "topics", metavar="TOPIC", type=TOPIC_NAME, multiple=True, shell_complete=complete_topics,
        help="A topic, or *. Repeatable.",
    )(decorated)  # fmt: skip


def pattern_option(default: str, *choices: str, text: str) -> Callable[[F], F]:
    """`--resource-pattern-type`, passed to the command as `pattern_type`."""
    return click.option(
        "--resource-pattern-type",
        "pattern_type",
        type=click.Choice(choices, case_sensitive=False),
        default=default,
        show_default=True,
        callback=lambda _context, _parameter, value: PatternType[value.upper()],
        help=text,
    )
