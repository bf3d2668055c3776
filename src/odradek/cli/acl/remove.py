"""`odradek acl remove`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from odradek.admin.acls.rules import OPERATIONS, Access, as_row, describe, filters
from odradek.cli.acl.list import print_rules
from odradek.cli.acl.options import OPERATION, PRINCIPAL, pattern_option, resource_options
from odradek.cli.client.options import cluster_options
from odradek.cli.framework.commands import command
from odradek.cli.framework.confirmation import confirm, yes_option
from odradek.cli.framework.output import note, print_json, say
from odradek.cli.framework.parameter_types import TEXT
from odradek.conventions.figures import count_text
from odradek.security.acls.bindings import AclFilter, PatternType, Permission
from odradek.security.authorizer import Operation

if TYPE_CHECKING:
    from odradek.admin.acls.rules import Selection
    from odradek.admin.cluster import Cluster
    from odradek.security.acls.bindings import AclBinding


@command(
    examples=[
        ("all rules of a topic", "odradek acl remove --topic orders"),
        ("all rules of a principal", "odradek acl remove --principal User:alice"),
        ("what a producer was given", "odradek acl remove --principal User:alice --producer --topic orders"),
        ("the denials of a topic", "odradek acl remove --topic orders --permission deny"),
    ]
)
@resource_options
@pattern_option(
    "literal", "literal", "prefixed", "match", "any", text="Which patterns of the name; `match` includes the wildcard."
)
@click.option(
    "--principal", "principals", metavar="TYPE:NAME", type=PRINCIPAL, multiple=True,
    help="Only rules of this principal. Repeatable.",
)  # fmt: skip
@click.option("--host", metavar="ADDRESS", type=TEXT, help="Only rules for this host.")
@click.option(
    "--operation", "operations", metavar="OPERATION", type=OPERATION, multiple=True,
    help="Only rules for this operation. Repeatable.",
)  # fmt: skip
@click.option(
    "--permission", type=click.Choice(["allow", "deny"], case_sensitive=False), help="Only rules that allow, or deny."
)
@click.option("--producer", is_flag=True, help="The rules that `acl add --producer` makes.")
@click.option("--consumer", is_flag=True, help="The rules that `acl add --consumer` makes.")
@yes_option
@cluster_options
def remove(
    *,
    selection: Selection,
    pattern_type: PatternType,
    principals: tuple[str, ...],
    host: str | None,
    operations: tuple[str, ...],
    permission: str | None,
    producer: bool,
    consumer: bool,
    yes: bool,
    cluster: Cluster,
    as_json: bool,
) -> None:
    """Remove rules. The rules that match are shown, and removed after confirmation."""
    from odradek.admin.acls.requests import delete, find

    if not selection.resources:
        pattern_type = PatternType.ANY  # all rules of the principals
    access = Access(tuple(OPERATIONS[name] for name in operations), producer, consumer)
    is_role = producer or consumer
    if not selection.resources and not principals:
        raise click.UsageError("name a resource (--topic, --group, --transactional-id, --cluster) or a --principal")
    if is_role and (problem := access.problem(selection)) is not None:
        raise click.UsageError(problem)
    if is_role:
        wanted = [
            AclFilter(kind, name, pattern_type, operation=operation)
            for kind, name, operation in access.rights(selection)
        ]
        permission = permission or "allow"
    else:
        wanted = [
            each._replace(operation=operation)
            for each in filters(selection, pattern_type)
            for operation in access.operations or (Operation.ANY,)
        ]
    kept = Permission.ANY if permission is None else Permission[permission.upper()]
    wanted = [
        each._replace(principal=principal, host=host, permission=kept)
        for each in wanted
        for principal in principals or (None,)
    ]
    found = find(cluster, wanted)
    if not found:
        if not as_json:
            say("no rules match: nothing was removed")
        return
    if not yes:
        show_matching(found, as_json=as_json)
    confirm(f"Remove {count_text(len(found), 'rule')}?", yes, refusal="nothing was removed")
    for rule in delete(cluster, found):
        if as_json:
            print_json({**as_row(rule), "removed": True})
        else:
            say(f"removed: {describe(rule)}")


def show_matching(rules: list[AclBinding], *, as_json: bool) -> None:
    """Before the question. JSON output has the rules that were removed, and no others."""
    note("These rules match:")
    if as_json:
        note("\n".join(map(describe, rules)))
    else:
        print_rules(rules, as_json=False)
