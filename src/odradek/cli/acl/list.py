"""`odradek acl list`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from odradek.admin.acls.rules import as_row, filters
from odradek.cli.acl.options import PRINCIPAL, pattern_option, resource_options
from odradek.cli.client.options import cluster_options
from odradek.cli.framework.commands import command
from odradek.cli.framework.output import print_columns, print_json, say

if TYPE_CHECKING:
    from odradek.admin.acls.rules import Selection
    from odradek.admin.cluster import Cluster
    from odradek.security.acls.bindings import AclBinding, PatternType

TITLES = ["TYPE", "RESOURCE", "PATTERN", "PRINCIPAL", "HOST", "OPERATION", "PERMISSION"]


@command(
    "list",
    examples=[
        ("every rule", "odradek acl list"),
        ("every rule that applies to a topic", "odradek acl list --topic orders --resource-pattern-type match"),
        ("the rules of a principal", "odradek acl list --principal User:alice"),
    ],
)
@resource_options
@pattern_option(
    "any",
    "any",
    "match",
    "literal",
    "prefixed",
    text="`match` also lists the prefixes of a name and the wildcard; `any` the same name in every pattern.",
)
@click.option(
    "--principal", "principals", metavar="TYPE:NAME", type=PRINCIPAL, multiple=True,
    help="Only rules of this principal. Repeatable.",
)  # fmt: skip
@cluster_options
def list_acls(
    *, selection: Selection, pattern_type: PatternType, principals: tuple[str, ...], cluster: Cluster, as_json: bool
) -> None:
    """List the rules of the cluster."""
    from odradek.admin.acls.requests import find

    wanted = filters(selection, pattern_type)
    if principals:
        wanted = [each._replace(principal=name) for each in wanted for name in principals]
    print_rules(find(cluster, wanted), as_json=as_json)


def print_rules(rules: list[AclBinding], *, as_json: bool) -> None:
    rows = [as_row(rule) for rule in rules]
    if as_json:
        for row in rows:
            print_json(row)
    elif rows:
        print_columns(TITLES, [list(row.values()) for row in rows])
    else:
        say("no rules")
