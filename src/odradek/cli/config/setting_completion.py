"""Shell completion of the setting names of `odradek config`: those of the TYPE and NAME before them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from click.shell_completion import CompletionItem

from odradek.cli.client.name_completion import TIMEOUT_S, complete_topic_settings, matching_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    import click

    from odradek.admin.cluster import Cluster


def entity_words(context: click.Context) -> tuple[str | None, str | None]:
    """TYPE and NAME. While the value of an option is incomplete, click leaves the arguments before it unparsed."""
    words = [*context.args, None, None]
    return context.params.get("kind") or words[0], context.params.get("name") or words[1]


def complete_settings(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    kind, name = entity_words(context)
    if kind == "topic":
        return complete_topic_settings(context, parameter, incomplete)

    def find(cluster: Cluster) -> Sequence[str]:
        from odradek.admin.settings import Kind, read_setting_names
        from odradek.cli.config.entity import broker_ids

        if kind == "group":
            return read_setting_names(cluster, Kind.GROUP, name or "any", TIMEOUT_S)
        return read_setting_names(cluster, Kind.BROKER, name or str(broker_ids(cluster)[0]), TIMEOUT_S)

    return matching_names(context, incomplete, find)


def complete_assignments(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """`NAME=` for each setting, to be followed by its value."""
    return [CompletionItem(f"{item.value}=") for item in complete_settings(context, parameter, incomplete)]
