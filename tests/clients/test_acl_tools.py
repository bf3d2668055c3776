"""`kafka-acls` and `odradek acl` agree: what one adds the other lists and removes, shorthands included."""

import re
from collections.abc import Iterator

import pytest

from odradek.local.running_broker import RunningBroker, broker
from tests.commands import Ran, run_odradek
from tests.jvm.tools import ToolSession

pytestmark = [pytest.mark.more, pytest.mark.jvm, pytest.mark.timeout(600)]

PROPERTIES = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
ENTRY = re.compile(r"\(principal=(.+), host=(.+), operation=(.+), permissionType=(.+)\)")
RESOURCE = re.compile(r"resourceType=(.+), name=(.+), patternType=(.+)\)`")

Rule = tuple[str, ...]


@pytest.fixture(scope="module")
def tools(jvm: None) -> Iterator[ToolSession]:
    with ToolSession() as session:
        yield session


@pytest.fixture(scope="module")
def secured() -> Iterator[RunningBroker]:
    with broker(PROPERTIES) as running:
        yield running


def of_tool(tools: ToolSession, secured: RunningBroker) -> set[Rule]:
    """The rules that kafka-acls lists, in the words of `odradek acl list`."""
    printed = tools.run("kafka-acls", "--bootstrap-server", secured.bootstrap_servers, "--list").checked()
    rules = set()
    resource: Rule = ()
    for line in printed.splitlines():
        if (found := RESOURCE.search(line)) is not None:
            kind, name, pattern = found.groups()
            resource = (kind.lower().replace("_", "-"), name, pattern.lower())
        elif (found := ENTRY.search(line)) is not None:
            principal, host, operation, permission = found.groups()
            rules.add((*resource, principal, host, operation.replace("_", "").lower(), permission.lower()))
    return rules


def acl(secured: RunningBroker, *arguments: str) -> Ran:
    ran = run_odradek("acl", *arguments, ODRADEK_BOOTSTRAP_SERVER=secured.bootstrap_servers)
    assert ran.code == 0, ran.errors
    return ran


def of_ours(secured: RunningBroker) -> set[Rule]:
    rows = acl(secured, "list", "--format", "json").rows
    return {(*list(row.values())[:5], row["operation"].lower(), row["permission"].lower()) for row in rows}


SHORTHANDS = [
    ["--producer", "--topic", "orders", "--transactional-id", "pay", "--idempotent"],
    ["--consumer", "--topic", "orders", "--group", "billing"],
    ["--operation", "Read", "--operation", "Alter", "--topic", "log-", "--resource-pattern-type", "prefixed"],
    ["--cluster", "--operation", "ClusterAction"],
]


@pytest.mark.parametrize("options", SHORTHANDS, ids=lambda options: options[0])
def test_shorthands_give_the_rules_of_kafka_acls(
    options: list[str], tools: ToolSession, secured: RunningBroker
) -> None:
    server = ("--bootstrap-server", secured.bootstrap_servers)
    principal = ("--allow-principal", "User:alice", "--allow-host", "10.0.0.1")
    acl(secured, "add", *principal, *options)
    made_by_us = of_ours(secured)
    assert made_by_us == of_tool(tools, secured)
    tools.run("kafka-acls", *server, "--remove", "--force", *principal, *options).checked()
    assert of_ours(secured) == set()
    tools.run("kafka-acls", *server, "--add", *principal, *options).checked()
    assert of_ours(secured) == made_by_us
    acl(secured, "remove", "--principal", "User:alice", "--yes")
    assert of_tool(tools, secured) == set()


@pytest.mark.parametrize(
    ("options", "operation"),
    [
        (("--user-principal", "User:bob"), "CreateTokens"),
        (("--delegation-token", "id"), "Describe"),
        (("--transactional-id", "pay"), "TwoPhaseCommit"),
    ],
    ids=lambda value: value[0].strip("-") if isinstance(value, tuple) else value,
)
def test_rules_that_the_client_library_does_not_know_are_listed_and_removed(
    options: tuple[str, str], operation: str, tools: ToolSession, secured: RunningBroker
) -> None:
    server = ("--bootstrap-server", secured.bootstrap_servers)
    given = ("--allow-principal", "User:alice", "--operation", operation)
    tools.run("kafka-acls", *server, "--add", *given, *options).checked()
    assert of_ours(secured) == of_tool(tools, secured)
    assert len(of_ours(secured)) == 1
    acl(secured, "remove", "--principal", "User:alice", "--yes")
    assert of_tool(tools, secured) == set()
