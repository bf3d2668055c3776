"""`odradek acl` on a broker with access control lists."""

from collections.abc import Callable, Iterator

import pytest

from odradek.admin.acls import create
from odradek.admin.cluster import Cluster
from odradek.local.running_broker import RunningBroker, broker
from odradek.security.acls.bindings import AclBinding, PatternType, Permission
from odradek.security.authorizer import Operation, ResourceType
from tests.commands import Ran, run_odradek

PROPERTIES = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS;User:admin",
}
Acl = Callable[..., Ran]


@pytest.fixture(scope="module")
def secured() -> Iterator[RunningBroker]:
    with broker(PROPERTIES) as running:
        yield running


@pytest.fixture
def acl(secured: RunningBroker) -> Acl:
    def run(*arguments: str) -> Ran:
        return run_odradek("acl", *arguments, ODRADEK_BOOTSTRAP_SERVER=secured.bootstrap_servers)

    return run


def test_rules_are_added_listed_checked_and_removed(acl: Acl) -> None:
    added = acl("add", "--allow-principal", "User:alice", "--producer", "--topic", "orders")
    assert added.output.splitlines()[0] == "User:alice may Write on topic orders from every host"
    rows = acl("list", "--topic", "orders", "--format", "json").rows
    assert {(row["principal"], row["operation"], row["permission"]) for row in rows} == {
        ("User:alice", operation, "Allow") for operation in ("Write", "Describe", "Create")
    }
    checked = acl("check", "User:alice", "write", "topic:orders")
    assert checked.code == 0
    assert "rule: User:alice may Write on topic orders" in checked.output
    acl(
        "add",
        "--deny-principal",
        "User:*",
        "--operation",
        "Write",
        "--topic",
        "ord",
        "--resource-pattern-type",
        "prefixed",
    )
    denied = acl("check", "User:alice", "Write", "topic:orders", "--format", "json")
    assert denied.code == 1
    assert (denied.row["allowed"], denied.row["rule"]["pattern"]) == (False, "prefixed")
    assert denied.row["knows_settings"] is True
    assert not acl("list", "--topic", "orders").output.count("User:*")
    assert acl("list", "--topic", "orders", "--resource-pattern-type", "match").output.count("User:*") == 1
    prefixed = ("remove", "--topic", "ord", "--resource-pattern-type", "prefixed")
    asked = acl(*prefixed, "--format", "json")
    assert (asked.code, asked.output, "User:* may not Write" in asked.errors) == (2, "", True)
    acl(*prefixed, "--yes")
    assert acl("check", "User:alice", "Write", "topic:orders").code == 0
    removed = acl("remove", "--principal", "User:alice", "--producer", "--topic", "orders", "--yes", "--format", "json")
    assert len(removed.rows) == 3
    assert acl("list").output == "no rules\n"


def test_rules_on_users_tokens_and_of_all_operations_are_seen(acl: Acl, secured: RunningBroker) -> None:
    """Rules of kafka-acls on resources that `acl add` does not name, and with operations that librdkafka lacks."""
    rights = [
        (ResourceType.USER, "User:bob", Operation.CREATE_TOKENS),
        (ResourceType.DELEGATION_TOKEN, "token", Operation.DESCRIBE),
    ]
    rules = [
        AclBinding(kind, name, PatternType.LITERAL, "User:alice", "*", operation, Permission.ALLOW)
        for kind, name, operation in rights
    ]
    create(Cluster(secured.bootstrap_servers, {}), rules)
    two_phases = ("--transactional-id", "payments", "--operation", "TwoPhaseCommit")
    assert acl("add", "--allow-principal", "User:alice", *two_phases).code == 0
    expected = {
        ("user", "User:bob", "CreateTokens"),
        ("delegation-token", "token", "Describe"),
        ("transactional-id", "payments", "TwoPhaseCommit"),
    }
    for arguments in ((), ("--principal", "User:alice")):
        rows = acl("list", *arguments, "--format", "json").rows
        assert {(row["resource_type"], row["resource"], row["operation"]) for row in rows} == expected
    assert acl("check", "User:alice", "CreateTokens", "user:User:bob").code == 0
    removed = acl("remove", "--principal", "User:alice", "--yes")
    assert "removed: User:alice may CreateTokens on user User:bob from every host" in removed.output
    assert acl("list").output == "no rules\n"


def test_a_user_without_rights_is_told_who_lacks_what() -> None:
    with broker({**PROPERTIES, "super.users": "User:admin"}) as running:

        def refusal(*arguments: str) -> str:
            ran = run_odradek(*arguments, ODRADEK_BOOTSTRAP_SERVER=running.bootstrap_servers)
            assert (ran.code, ran.output) == (1, "")
            return ran.errors

        of_cluster = {
            ("acl", "list"): "Describe",
            ("acl", "add", "--allow-principal", "User:a", "--producer", "--topic", "t"): "Alter",
            ("user", "list"): "Describe",
            ("quota", "list"): "DescribeConfigs",
            ("quota", "set", "--user", "a", "producer_byte_rate=1"): "AlterConfigs",
            ("config", "describe", "broker-default"): "DescribeConfigs",
        }
        for command, operation in of_cluster.items():
            line = refusal(*command)
            assert "User:ANONYMOUS is not authorized for the cluster" in line
            assert line.endswith(f": it needs {operation}\n")
        for command, operation in {
            ("topic", "create", "t"): "Create",
            ("topic", "describe", "t"): "Describe",
            ("topic", "delete", "t", "--yes"): "Delete",
            ("produce", "t", "-v", "v"): "Write",
        }.items():
            line = refusal(*command)
            assert "User:ANONYMOUS is not authorized for the topic" in line
            assert f": it needs {operation}" in line
        listed = run_odradek("topic", "list", ODRADEK_BOOTSTRAP_SERVER=running.bootstrap_servers)
        assert listed.output.startswith("no topics that User:ANONYMOUS may describe")
        listed = run_odradek("group", "list", ODRADEK_BOOTSTRAP_SERVER=running.bootstrap_servers)
        assert listed.output.startswith("no groups that User:ANONYMOUS may describe")
        listed = run_odradek("transaction", "list", ODRADEK_BOOTSTRAP_SERVER=running.bootstrap_servers)
        assert listed.output.startswith("no transactions that User:ANONYMOUS may describe")
        for shown in ("status", "info"):
            status = run_odradek("cluster", shown, ODRADEK_BOOTSTRAP_SERVER=running.bootstrap_servers)
            assert (status.code, status.errors) == (0, "")
            assert "1 broker" in status.output
            assert "this user may not see other topics\nno topics that this user may describe" in status.output
            assert ("this user lacks Describe on the cluster" in status.output) == (shown == "status")


def test_a_topic_is_described_without_its_settings_to_those_who_may_not_read_them() -> None:
    with broker({**PROPERTIES, "allow.everyone.if.no.acl.found": "true", "super.users": "User:admin"}) as running:

        def run(*arguments: str) -> Ran:
            return run_odradek(*arguments, ODRADEK_BOOTSTRAP_SERVER=running.bootstrap_servers)

        assert run("topic", "create", "t").code == 0
        assert run("acl", "add", "--allow-principal", "User:*", "--operation", "Describe", "--topic", "t").code == 0
        described = run("topic", "describe", "t")
        assert (described.code, "IN SYNC" in described.output) == (0, True)
        assert "settings of topic t: User:ANONYMOUS is not authorized" in described.errors
        assert run("topic", "describe", "t", "--format", "json").row["configs"] is None


def test_super_users_and_resources_without_rules_are_named(acl: Acl) -> None:
    assert "super.users names the principal" in acl("check", "User:admin", "Alter", "cluster").output
    nobody = acl("check", "User:nobody", "Alter", "cluster")
    assert nobody.code == 1
    assert "the resource has no ACLs, and allow.everyone.if.no.acl.found is false" in nobody.output


def test_mistakes_are_refused_before_a_request(acl: Acl) -> None:
    for arguments, message in (
        (["add", "--topic", "t"], "name a principal"),
        (["add", "--allow-principal", "alice", "--topic", "t"], "is not TYPE:NAME"),
        (["remove", "--yes"], "name a resource"),
        (["check", "User:a", "Read", "orders"], "expected topic:NAME"),
    ):
        ran = acl(*arguments)
        assert ran.code == 2
        assert message in ran.errors


def test_a_broker_without_an_authorizer_says_so(bootstrap_server: str) -> None:
    ran = run_odradek("acl", "list", ODRADEK_BOOTSTRAP_SERVER=bootstrap_server)
    assert ran.code == 1
    assert "set authorizer.class.name" in ran.errors


def test_check_names_the_permission_of_a_stream(acl: Acl, secured: RunningBroker) -> None:
    create = ("stream", "create", "/checked", "--consume-perm", "u:alice | g:plant")
    assert run_odradek(*create, ODRADEK_BOOTSTRAP_SERVER=secured.bootstrap_servers).code == 0
    checked = acl("check", "User:alice", "Read", "topic:/checked:a")
    assert (checked.code, "the stream's permission consume: u:alice | g:plant" in checked.output) == (0, True)
    assert acl("check", "User:alice", "Read", "topic:/checked:a", "--format", "json").row["permission"] == {
        "consume": "u:alice | g:plant"
    }
    acl("add", "--deny-principal", "User:alice", "--operation", "Read", "--topic", "/checked:a")
    assert acl("check", "User:alice", "Read", "topic:/checked:a").code == 1
    assert acl("remove", "--topic", "/checked:a", "--yes").code == 0
