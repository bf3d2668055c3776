"""`odradek acl add`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from odradek.admin.acls.rules import OPERATIONS, Access, Subjects, as_row, bindings, describe, unsupported_operation
from odradek.cli.acl.options import OPERATION, PRINCIPAL, pattern_option, resource_options
from odradek.cli.client.options import cluster_options
from odradek.cli.framework.commands import command
from odradek.cli.framework.output import print_json, say
from odradek.cli.framework.parameter_types import TEXT
from odradek.security.acls.bindings import Permission

if TYPE_CHECKING:
    from odradek.admin.acls.rules import Selection
    from odradek.admin.cluster import Cluster
    from odradek.security.acls.bindings import PatternType


@command(
    examples=[
        ("a producer", "odradek acl add --allow-principal User:alice --producer --topic orders"),
        ("a consumer", "odradek acl add --allow-principal User:bob --consumer --topic orders --group a"),
        (
            "everything on a topic, from one host",
            "odradek acl add --allow-principal User:eve --topic t --allow-host ::1",
        ),
        ("nobody may delete", "odradek acl add --deny-principal 'User:*' --operation Delete --topic '*'"),
    ]
)
@resource_options
@pattern_option(
    "literal", "literal", "prefixed", text="Whether the name is that of a resource, or the beginning of several names."
)
@click.option(
    "--allow-principal", "allowed", metavar="TYPE:NAME", type=PRINCIPAL, multiple=True,
    help="Principal that is allowed, such as User:alice; User:* is every principal. Repeatable.",
)  # fmt: skip
@click.option(
    "--deny-principal", "denied", metavar="TYPE:NAME", type=PRINCIPAL, multiple=True,
    help="Principal that is denied, whatever other rules allow. Repeatable.",
)  # fmt: skip
@click.option(
    "--allow-host", "allowed_hosts", metavar="ADDRESS", type=TEXT, multiple=True,
    help="Host from which it is allowed; every host by default. Repeatable.",
)  # fmt: skip
@click.option(
    "--deny-host", "denied_hosts", metavar="ADDRESS", type=TEXT, multiple=True,
    help="Host from which it is denied; every host by default. Repeatable.",
)  # fmt: skip
@click.option(
    "--operation", "operations", metavar="OPERATION", type=OPERATION, multiple=True,
    help=f"Operation: {', '.join(OPERATIONS)}. All by default. Repeatable.",
)  # fmt: skip
@click.option(
    "--producer", is_flag=True, help="Write, Describe and Create on topics; Write and Describe on transactional ids."
)
@click.option("--consumer", is_flag=True, help="Read and Describe on topics, Read on groups.")
@click.option("--idempotent", is_flag=True, help="With --producer: IdempotentWrite on the cluster, for older brokers.")
@cluster_options
def add(
    *,
    selection: Selection,
    pattern_type: PatternType,
    allowed: tuple[str, ...],
    denied: tuple[str, ...],
    allowed_hosts: tuple[str, ...],
    denied_hosts: tuple[str, ...],
    operations: tuple[str, ...],
    producer: bool,
    consumer: bool,
    idempotent: bool,
    cluster: Cluster,
    as_json: bool,
) -> None:
    """Allow or deny operations to principals. A rule that exists stays as it is."""
    from odradek.admin.acls.requests import create

    access = Access(tuple(OPERATIONS[name] for name in operations), producer, consumer, idempotent)
    if not allowed and not denied:
        raise click.UsageError("name a principal: --allow-principal or --deny-principal")
    problem = access.problem(selection) or unsupported_operation(access, selection)
    if problem is not None:
        raise click.UsageError(problem)
    subjects = [
        Subjects(allowed, allowed_hosts, Permission.ALLOW),
        Subjects(denied, denied_hosts, Permission.DENY),
    ]
    rules = bindings(selection, access, subjects, pattern_type)
    create(cluster, rules)
    for rule in rules:
        if as_json:
            print_json({**as_row(rule), "added": True})
        else:
            say(describe(rule))
