"""`odradek topic delete`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.cli.client.options import cluster_options, topics_argument
from odradek.cli.framework.commands import command
from odradek.cli.framework.confirmation import confirm, yes_option
from odradek.cli.framework.failure import Failure
from odradek.cli.framework.output import print_json, say

if TYPE_CHECKING:
    from odradek.cli.client.cluster import Cluster


@command(
    examples=[
        ("after a question", "odradek topic delete pump"),
        ("several, without a question", "odradek topic delete pump valve --yes"),
    ]
)
@topics_argument
@yes_option
@cluster_options
def delete(names: tuple[str, ...], yes: bool, cluster: Cluster, as_json: bool) -> None:
    """Delete topics and all their records."""
    confirm(f"Delete {', '.join(names)} and all records?", yes)
    failures = []
    for name, future in cluster.admin().delete_topics(list(names)).items():
        try:
            cluster.finish(future, f"topic {name}", "Delete")
        except Failure as failure:
            failures.append(failure)
            continue
        if as_json:
            print_json({"topic": name, "deleted": True})
        else:
            say(f"deleted topic {name}")
    if failures:
        raise Failure("; ".join(failure.message for failure in failures))
