"""`odradek acl`: access control lists. Names of options are those of kafka-acls."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from odradek.admin import acls
from odradek.cli.client.options import cluster_options, complete_groups, complete_topics, complete_transactional_ids
from odradek.cli.framework import parameter_types as types
from odradek.cli.framework.commands import group
from odradek.cli.framework.options import confirm, flag, option, repeatable, wrapped, yes_option
from odradek.cli.framework.output import note, print_json, print_list, print_result, say
from odradek.conventions.figures import count_text
from odradek.security.acls.bindings import WILDCARD, AclBinding, AclFilter, PatternType, Permission
from odradek.security.authorizer import Operation

if TYPE_CHECKING:
    from odradek.admin.cluster import Cluster

F = TypeVar("F", bound=Callable[..., Any])
OPERATION = click.Choice(list(acls.OPERATIONS), case_sensitive=False)
TITLES = ["TYPE", "RESOURCE", "PATTERN", "PRINCIPAL", "HOST", "OPERATION", "PERMISSION"]


@group(
    ("alice may write to a topic", "odradek acl add --allow-principal User:alice --producer --topic orders"),
    ("bob reads it in a group", "odradek acl add --allow-principal User:bob --consumer --topic orders --group a"),
    ("the rule by which alice may write", "odradek acl check User:alice Write topic:orders"),
)
def acl() -> None:
    """Add, list, remove and check access control lists, as kafka-acls does.

    The brokers need authorizer.class.name; without it they refuse these commands.
    """


PRINCIPAL = types.ArgumentType("principal", lambda text: acls.checked_principal(types.checked_text(text)))


def resource_options(function: F) -> F:
    """`--topic`, `--group`, `--transactional-id` and `--cluster`, passed to the command as `selection`."""

    def with_selection(
        *arguments: Any, topics: tuple[str, ...], groups: tuple[str, ...], transactional_ids: tuple[str, ...],
        on_cluster: bool, **rest: Any,
    ) -> Any:  # fmt: skip
        return function(*arguments, selection=acls.Selection(topics, groups, transactional_ids, on_cluster), **rest)

    return wrapped(
        function, with_selection,
        repeatable("--topic topics", "TOPIC", types.TOPIC_NAME, "A topic, or *.", shell_complete=complete_topics),
        repeatable("--group groups", "GROUP", types.GROUP_NAME, "A group, or *.", shell_complete=complete_groups),
        repeatable("--transactional-id transactional_ids", "ID", types.TRANSACTIONAL_ID, "A transactional id, or *.",
            shell_complete=complete_transactional_ids,
        ),
        flag("--cluster on_cluster", "The cluster itself."),
    )  # fmt: skip


def pattern_option(default: str, *choices: str, text: str) -> Callable[[F], F]:
    """`--resource-pattern-type`, passed to the command as `pattern_type`."""
    return option(
        "--resource-pattern-type pattern_type", None, click.Choice(choices, case_sensitive=False),
        text, default=default, callback=lambda _context, _parameter, value: PatternType[value.upper()],
    )  # fmt: skip


def principal_option(name: str, parameter: str, text: str) -> Callable[[F], F]:
    return repeatable(f"{name} {parameter}", "TYPE:NAME", PRINCIPAL, text)


def operation_option(text: str) -> Callable[[F], F]:
    return repeatable("--operation operations", "OPERATION", OPERATION, text)


wanted_principals = principal_option("--principal", "principals", "Only rules of this principal.")


@acl.command(
    ("a producer", "odradek acl add --allow-principal User:alice --producer --topic orders"),
    ("a consumer", "odradek acl add --allow-principal User:bob --consumer --topic orders --group a"),
    ("everything on a topic from a host", "odradek acl add --allow-principal User:eve --topic t --allow-host ::1"),
    ("nobody may delete", "odradek acl add --deny-principal 'User:*' --operation Delete --topic '*'"),
)
@resource_options
@pattern_option(
    "literal", "literal", "prefixed", text="Whether the name is that of a resource, or the beginning of several names."
)
@principal_option(
    "--allow-principal", "allowed", "Principal that is allowed, such as User:alice; User:* is every principal."
)
@principal_option("--deny-principal", "denied", "Principal that is denied, whatever other rules allow.")
@repeatable(
    "--allow-host allowed_hosts", "ADDRESS", types.TEXT, "Host from which it is allowed; every host by default."
)
@repeatable("--deny-host denied_hosts", "ADDRESS", types.TEXT, "Host from which it is denied; every host by default.")
@operation_option(f"Operation: {', '.join(acls.OPERATIONS)}. All by default.")
@flag("--producer", "Write, Describe and Create on topics; Write and Describe on transactional ids.")
@flag("--consumer", "Read and Describe on topics, Read on groups.")
@flag("--idempotent", "With --producer: IdempotentWrite on the cluster, for older brokers.")
@cluster_options
def add(
    *, selection: acls.Selection, pattern_type: PatternType, allowed: tuple[str, ...], denied: tuple[str, ...],
    allowed_hosts: tuple[str, ...], denied_hosts: tuple[str, ...], operations: tuple[str, ...], producer: bool,
    consumer: bool, idempotent: bool, cluster: Cluster, as_json: bool,
) -> None:  # fmt: skip
    """Allow or deny operations to principals. A rule that exists stays as it is."""
    access = acls.Access(tuple(acls.OPERATIONS[name] for name in operations), producer, consumer, idempotent)
    if not allowed and not denied:
        raise click.UsageError("name a principal: --allow-principal or --deny-principal")
    problem = access.problem(selection) or acls.unsupported_operation(access, selection)
    if problem is not None:
        raise click.UsageError(problem)
    subjects = [
        acls.Subjects(allowed, allowed_hosts, Permission.ALLOW),
        acls.Subjects(denied, denied_hosts, Permission.DENY),
    ]
    rules = acls.bindings(selection, access, subjects, pattern_type)
    acls.create(cluster, rules)
    for rule in rules:
        print_result({**acls.as_row(rule), "added": True}, acls.describe(rule), as_json=as_json)


@acl.command(
    ("every rule", "odradek acl list"),
    ("every rule that applies to a topic", "odradek acl list --topic orders --resource-pattern-type match"),
    ("the rules of a principal", "odradek acl list --principal User:alice"),
    name="list",
)
@resource_options
@pattern_option(
    "any", "any", "match", "literal", "prefixed",
    text="`match` also lists the prefixes of a name and the wildcard; `any` the same name in every pattern.",
)  # fmt: skip
@wanted_principals
@cluster_options
def list_acls(
    selection: acls.Selection, pattern_type: PatternType, principals: tuple[str, ...], cluster: Cluster, as_json: bool
) -> None:
    """List the rules of the cluster."""
    print_rules(acls.find(cluster, of_principals(acls.filters(selection, pattern_type), principals)), as_json=as_json)


def of_principals(wanted: list[AclFilter], principals: tuple[str, ...]) -> list[AclFilter]:
    """The filters for the rules of these principals; of every principal if none is named."""
    return [each._replace(principal=name) for each in wanted for name in principals or (None,)]


def print_rules(rules: list[AclBinding], *, as_json: bool) -> None:
    print_list(map(acls.as_row, rules), TITLES, otherwise="no rules", as_json=as_json)


@acl.command(
    ("all rules of a topic", "odradek acl remove --topic orders"),
    ("all rules of a principal", "odradek acl remove --principal User:alice"),
    ("what a producer was given", "odradek acl remove --principal User:alice --producer --topic orders"),
    ("the denials of a topic", "odradek acl remove --topic orders --permission deny"),
)
@resource_options
@pattern_option(
    "literal", "literal", "prefixed", "match", "any", text="Which patterns of the name; `match` includes the wildcard."
)
@wanted_principals
@option("--host", "ADDRESS", types.TEXT, "Only rules for this host.")
@operation_option("Only rules for this operation.")
@option("--permission", None, click.Choice(["allow", "deny"], case_sensitive=False), "Only rules that allow, or deny.")
@flag("--producer", "The rules that `acl add --producer` makes.")
@flag("--consumer", "The rules that `acl add --consumer` makes.")
@yes_option
@cluster_options
def remove(
    *, selection: acls.Selection, pattern_type: PatternType, principals: tuple[str, ...], host: str | None,
    operations: tuple[str, ...], permission: str | None, producer: bool, consumer: bool, yes: bool, cluster: Cluster,
    as_json: bool,
) -> None:  # fmt: skip
    """Remove rules. The rules that match are shown, and removed after confirmation."""
    access = acls.Access(tuple(acls.OPERATIONS[name] for name in operations), producer, consumer)
    is_role = producer or consumer
    if not selection.resources and not principals:
        raise click.UsageError("name a resource (--topic, --group, --transactional-id, --cluster) or a --principal")
    if is_role and (problem := access.problem(selection)) is not None:
        raise click.UsageError(problem)
    if not selection.resources:
        pattern_type = PatternType.ANY  # all rules of the principals
    if is_role:
        wanted = [AclFilter(kind, name, pattern_type, operation=each) for kind, name, each in access.rights(selection)]
    else:
        pairs = itertools.product(acls.filters(selection, pattern_type), access.operations or (Operation.ANY,))
        wanted = [each._replace(operation=operation) for each, operation in pairs]
    kept = Permission[(permission or ("allow" if is_role else "any")).upper()]
    wanted = [each._replace(host=host, permission=kept) for each in wanted]
    found = acls.find(cluster, of_principals(wanted, principals))
    if not found:
        if not as_json:
            say("no rules match: nothing was removed")
        return
    if not yes:
        show_matching(found, as_json=as_json)
    confirm(f"Remove {count_text(len(found), 'rule')}?", yes, refusal="nothing was removed")
    for rule in acls.delete(cluster, found):
        print_result({**acls.as_row(rule), "removed": True}, f"removed: {acls.describe(rule)}", as_json=as_json)


def show_matching(rules: list[AclBinding], *, as_json: bool) -> None:
    """Before the question. JSON output has the rules that were removed, and no others."""
    note("These rules match:")
    if as_json:
        note("\n".join(map(acls.describe, rules)))
    else:
        print_rules(rules, as_json=False)


@acl.command(
    ("may alice write to a topic?", "odradek acl check User:alice Write topic:orders"),
    ("from one host", "odradek acl check User:bob Read group:billing --host 10.0.0.7"),
    ("the cluster", "odradek acl check User:admin Alter cluster"),
)
@click.argument("principal", metavar="PRINCIPAL", type=PRINCIPAL)
@click.argument("operation", metavar="OPERATION", type=OPERATION)
@click.argument("resource", metavar="RESOURCE", type=types.TEXT)
@option(
    "--host", "ADDRESS", types.TEXT,
    "Host of the principal. Without it, rules for single hosts do not count.", default=WILDCARD, show_default=False,
)  # fmt: skip
@cluster_options
@click.pass_context
def check(
    context: click.Context, *, principal: str, operation: str, resource: str, host: str, cluster: Cluster, as_json: bool
) -> None:
    """Show whether a principal may do something, and which rule decides. The exit code is 1 if it may not.

    RESOURCE is topic:NAME, group:NAME, transactional-id:ID, user:PRINCIPAL, delegation-token:ID or cluster. super.users
    and allow.everyone.if.no.acl.found are read from a broker. If it does not show them, a note says so, and
    `knows_settings` of the JSON output is false.
    """
    parsed = acls.parse_resource(resource)
    if parsed is None:
        expected = "topic:NAME, group:NAME, transactional-id:ID, user:PRINCIPAL, delegation-token:ID or cluster"
        raise click.UsageError(f"{resource}: expected {expected}")
    kind, name = parsed
    checked = acls.check_access(cluster, principal, acls.OPERATIONS[operation], kind, name, host)
    decision, knows_settings = checked.decision, checked.knows_settings
    if as_json:
        rule = decision.binding
        asked = {"principal": principal, "operation": operation, "resource": resource, "allowed": decision.is_allowed}
        rule_row = None if rule is None else acls.as_row(rule)
        reason = decision.reason.name.lower()
        stream = None if decision.permission is None else {decision.permission: checked.expression}
        rows = {"reason": reason, "rule": rule_row, "permission": stream, "unknown": checked.unknown or None}
        print_json({**asked, **rows, "knows_settings": knows_settings})
    else:
        if not knows_settings:
            note(acls.UNKNOWN_SETTINGS)
        if checked.unknown:
            note(checked.unknown)
        verb = "may" if decision.is_allowed else "may not"
        say(f"{principal} {verb} {operation} on {resource}")
        say(f"  {acls.explanation(decision, checked.expression)}")
    if not decision.is_allowed:
        context.exit(1)
