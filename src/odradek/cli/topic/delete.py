"""`odradek topic delete`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from odradek.cli.framework.commands import command
from odradek.cli.framework.failure import Failure
from odradek.cli.framework.options import cluster_options, topic_argument
from odradek.cli.framework.output import print_json, say

if TYPE_CHECKING:
    from odradek.cli.client.cluster import Cluster


@command(
    examples=[
        ("after a question", "odradek topic delete pump"),
        ("several, without a question", "odradek topic delete pump valve --yes"),
    ]
)
@topic_argument(several=True)
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@cluster_options
def delete(names: tuple[str, ...], yes: bool, cluster: Cluster, as_json: bool) -> None:
    """Delete topics and all their records."""
    if not yes:
        if not sys.stdin.isatty():
            raise click.UsageError("deleting takes --yes where nobody can be asked")
        if not click.confirm(f"Delete {', '.join(names)} and all records?", err=True):
            raise Failure("nothing was deleted")
    failures = []
    for name, future in cluster.admin().delete_topics(list(names)).items():
        try:
            cluster.finish(future, f"topic {name}")
        except Failure as failure:
            failures.append(failure)
            continue
        if as_json:
            print_json({"topic": name, "deleted": True})
        else:
            say(f"deleted topic {name}")
    if failures:
        raise Failure("; ".join(failure.message for failure in failures))
