"""`odradek group delete`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.admin.groups import delete_group
from odradek.cli.client.options import cluster_options, groups_argument
from odradek.cli.framework.commands import command
from odradek.cli.framework.confirmation import confirm, yes_option
from odradek.cli.framework.output import print_json, say
from odradek.conventions.failures import Failure

if TYPE_CHECKING:
    from odradek.admin.cluster import Cluster


@command(
    examples=[
        ("after a question", "odradek group delete billing"),
        ("several, without a question", "odradek group delete billing audit --yes"),
    ]
)
@groups_argument
@yes_option
@cluster_options
def delete(names: tuple[str, ...], yes: bool, cluster: Cluster, as_json: bool) -> None:
    """Delete groups and their committed offsets. A group with members is not deleted."""
    unique = list(dict.fromkeys(names))
    whose = "its" if len(unique) == 1 else "their"
    confirm(f"Delete {', '.join(unique)} and {whose} committed offsets?", yes)
    failures = []
    for name in unique:
        try:
            delete_group(cluster.requests, name)
        except Failure as failure:
            failures.append(failure)
            continue
        if as_json:
            print_json({"group": name, "deleted": True})
        else:
            say(f"deleted group {name}")
    if failures:
        raise Failure("; ".join(failure.message for failure in failures))
