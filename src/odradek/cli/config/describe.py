"""`odradek config describe`: settings of a topic, a broker, all brokers, or a group."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from odradek.admin.settings import read_settings
from odradek.cli.client.options import cluster_options
from odradek.cli.config.entity import entity_arguments, find_entity
from odradek.cli.framework.commands import command
from odradek.cli.framework.output import print_columns, print_json, say, strong

if TYPE_CHECKING:
    from odradek.admin.cluster import Cluster
    from odradek.admin.settings import Setting


@command(
    examples=[
        ("settings of a broker that differ from the defaults", "odradek config describe broker 0"),
        ("every setting of a topic", "odradek config describe topic pump --all"),
        ("settings that were changed for all brokers", "odradek config describe broker-default"),
        ("the session timeout of a group", "odradek config describe group audit --all"),
    ]
)
@entity_arguments
@click.option("--all", "everything", is_flag=True, help="Show every setting, not only those that differ.")
@cluster_options
def describe(kind: str, name: str | None, everything: bool, cluster: Cluster, as_json: bool) -> None:
    """Show settings, and where their values come from.

    TYPE is topic, broker, broker-default (all brokers) or group. NAME is a topic, a broker id or a group.
    """
    entity = find_entity(cluster, kind, name)
    found = read_settings(cluster, *entity.resource)
    shown = [each for each in found if everything or not each.is_default]
    if as_json:
        for each in shown:
            facts = {"setting": each.name, **each.as_object(), "read_only": each.is_read_only}
            print_json({"type": entity.kind, "name": entity.name, **facts})
        return
    if not shown:
        say(f"{entity}: all settings have their default values")
        return
    say(strong(str(entity)))
    titles = ["SETTING", "VALUE", "SOURCE", "CHANGEABLE"]
    print_columns(titles, [(each.name, value_text(each), each.source, change_text(each)) for each in shown])


def value_text(setting: Setting) -> str:
    if setting.is_sensitive:
        return "(hidden)"
    return "(none)" if setting.value is None else setting.value


def change_text(setting: Setting) -> str:
    """Whether `odradek config alter` can change the setting."""
    return "at start only" if setting.is_read_only else "at run time"
