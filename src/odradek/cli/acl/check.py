"""`odradek acl check`: the decision of the brokers, made here from their rules by the same code."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from odradek.admin.acls.rules import OPERATIONS, as_row, parse_resource
from odradek.cli.acl.options import OPERATION, PRINCIPAL
from odradek.cli.client.options import cluster_options
from odradek.cli.framework.commands import command
from odradek.cli.framework.output import note, print_json, say
from odradek.cli.framework.parameter_types import TEXT
from odradek.security.acls.bindings import WILDCARD

if TYPE_CHECKING:
    from odradek.admin.cluster import Cluster

DENIED_EXIT_CODE = 1


@command(
    examples=[
        ("may alice write to a topic?", "odradek acl check User:alice Write topic:orders"),
        ("from one host", "odradek acl check User:bob Read group:billing --host 10.0.0.7"),
        ("the cluster", "odradek acl check User:admin Alter cluster"),
    ]
)
@click.argument("principal", metavar="PRINCIPAL", type=PRINCIPAL)
@click.argument("operation", metavar="OPERATION", type=OPERATION)
@click.argument("resource", metavar="RESOURCE", type=TEXT)
@click.option(
    "--host", metavar="ADDRESS", type=TEXT, default=WILDCARD,
    help="Host of the principal. Without it, rules for single hosts do not count.",
)  # fmt: skip
@cluster_options
@click.pass_context
def check(
    context: click.Context,
    *,
    principal: str,
    operation: str,
    resource: str,
    host: str,
    cluster: Cluster,
    as_json: bool,
) -> None:
    """Show whether a principal may do something, and which rule decides. The exit code is 1 if it may not.

    RESOURCE is topic:NAME, group:NAME, transactional-id:ID, user:PRINCIPAL, delegation-token:ID or cluster. super.users
    and allow.everyone.if.no.acl.found are read from a broker. If it does not show them, a note says so, and
    `knows_settings` of the JSON output is false.
    """
    from odradek.admin.acls.decision import UNKNOWN_SETTINGS, check_access, explanation

    parsed = parse_resource(resource)
    if parsed is None:
        expected = "topic:NAME, group:NAME, transactional-id:ID, user:PRINCIPAL, delegation-token:ID or cluster"
        raise click.UsageError(f"{resource}: expected {expected}")
    kind, name = parsed
    decision, knows_settings = check_access(cluster, principal, OPERATIONS[operation], kind, name, host)
    if not knows_settings and not as_json:
        note(UNKNOWN_SETTINGS)
    if as_json:
        rule = decision.binding
        print_json(
            {
                "principal": principal,
                "operation": operation,
                "resource": resource,
                "allowed": decision.is_allowed,
                "reason": decision.reason.name.lower(),
                "rule": None if rule is None else as_row(rule),
                "knows_settings": knows_settings,
            }
        )
    else:
        verb = "may" if decision.is_allowed else "may not"
        say(f"{principal} {verb} {operation} on {resource}")
        say(f"  {explanation(decision)}")
    if not decision.is_allowed:
        context.exit(DENIED_EXIT_CODE)
