"""The Access pages: users, rules with the check that explains, and quotas. TEST_SECURED_SERVER names another cluster
with an authorizer, such as Apache Kafka, of which the caller is a super user."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import pytest

from odradek.admin.acls import find
from odradek.admin.cluster import Cluster
from odradek.admin.quotas import Part, read_quotas
from odradek.admin.users import Credential, read_users
from odradek.console.views import access as views
from odradek.security.acls.bindings import AclFilter, PatternType
from odradek.security.authorizer import ResourceType
from odradek.testing import broker
from tests.console.conftest import Answer, Visitor, running_console

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PROPERTIES = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS;User:root",
}


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    given = os.environ.get("TEST_SECURED_SERVER")
    if given:
        yield given
    else:
        with broker(PROPERTIES) as running:
            yield running.bootstrap_servers


@pytest.fixture(scope="module")
def cluster(server: str) -> Cluster:
    return Cluster(server, {})


@pytest.fixture(scope="module")
def address(server: str) -> Iterator[str]:
    with running_console(server) as console:
        yield console


@pytest.fixture
def visitor(address: str) -> Visitor:
    visitor = Visitor(address)
    visitor.get("/new-topic")
    return visitor


def rules_of(cluster: Cluster, principal: str) -> set[tuple[str, str, str]]:
    filters = [
        AclFilter(kind, None, PatternType.ANY, principal=principal)
        for kind in (ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER, ResourceType.TRANSACTIONAL_ID)
    ]
    return {(rule.resource_type.name, rule.resource_name, rule.operation.name) for rule in find(cluster, filters)}


def codes_of(page: Answer) -> list[str]:
    return re.findall(r'name="rule" value="(\[.*?\])"', page.text)


def test_a_user_from_the_first_to_the_last_form(
    visitor: Visitor, cluster: Cluster, new_name: Callable[[], str]
) -> None:
    name = new_name()
    fields = {"name": name, "password": "one", "again": "one", "SCRAM-SHA-512": "on"}
    assert f"Added user {name}." in visitor.post("/access/users", fields).text
    assert [(each.user, each.mechanism) for each in read_users(cluster, [name])] == [(name, "SCRAM-SHA-512")]
    assert "exists" in visitor.post("/access/users", fields).text
    page = visitor.get(f"/access?q={name}", hx_target="users")
    assert name in page.text
    assert "<html" not in page.source
    changed = visitor.post("/access/users/password", {"name": name, "password": "two", "again": "two"})
    assert f"Changed the password of user {name}." in changed.text
    assert "nothing was removed" in visitor.post("/access/users/remove", {"name": name, "confirmation": "x"}).text
    removed = visitor.post("/access/users/remove", {"name": name, "confirmation": name})
    assert f"Removed user {name}." in removed.text
    assert not read_users(cluster, [name])
    assert "there is no user" in visitor.post("/access/users/remove", {"name": name, "confirmation": name}).text


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"name": "", "password": "a", "again": "a", "SCRAM-SHA-256": "on"}, "printable characters"),
        ({"name": "x", "password": "a", "again": "b", "SCRAM-SHA-256": "on"}, "the two passwords differ"),
        ({"name": "x", "password": "", "again": "", "SCRAM-SHA-256": "on"}, "a password has 1 to"),
        ({"name": "x", "password": "a", "again": "a"}, "choose a mechanism"),
    ],
)
def test_a_user_that_cannot_be_added_is_explained(visitor: Visitor, fields: dict[str, str], words: str) -> None:
    answer = visitor.post("/access/users", fields)
    assert answer.status == 422
    assert words in answer.text


def test_a_password_is_neither_shown_nor_logged(
    visitor: Visitor, new_name: Callable[[], str], caplog: pytest.LogCaptureFixture
) -> None:
    name = new_name()
    caplog.set_level("INFO", "odradek.console.audit")
    secret = "very-secret-word"
    pages = [
        visitor.post("/access/users", {"name": name, "password": secret, "again": secret, "SCRAM-SHA-256": "on"}),
        visitor.post("/access/users", {"name": name, "password": secret, "again": "x", "SCRAM-SHA-256": "on"}),
        visitor.post("/access/users/password", {"name": name, "password": secret, "again": secret}),
    ]
    assert not any(secret in page.text for page in pages)
    assert secret not in caplog.text


def test_rules_of_a_producer_and_a_consumer_are_those_of_kafka_acls(
    visitor: Visitor, cluster: Cluster, new_name: Callable[[], str]
) -> None:
    name = new_name()
    producer = {"principal": f"User:{name}", "role": "producer", "topic": name}
    assert f"Added 3 rules for User:{name}." in visitor.post("/access/rules", producer).text
    assert rules_of(cluster, f"User:{name}") == {
        ("TOPIC", name, operation) for operation in ("WRITE", "DESCRIBE", "CREATE")
    }
    refused = visitor.post("/access/rules", {**producer, "role": "consumer"})
    assert refused.status == 422
    assert "consumer needs group" in refused.text
    visitor.post("/access/rules", {**producer, "role": "consumer", "group": "g"})
    assert {("TOPIC", name, "READ"), ("GROUP", "g", "READ")} < rules_of(cluster, f"User:{name}")


def test_rules_are_listed_checked_and_removed(visitor: Visitor, cluster: Cluster, new_name: Callable[[], str]) -> None:
    name = new_name()
    rule = {"role": "operation", "operation": "Write"}
    visitor.post("/access/rules", {**rule, "principal": f"User:{name}", "topic": name})
    deny = {**rule, "principal": "User:*", "permission": "deny", "topic": name[:6], "pattern": "prefixed"}
    visitor.post("/access/rules", deny)
    listed = visitor.get(f"/access/rules?kind=topic&name={name}")
    assert len(codes_of(listed)) == 1
    applying = visitor.get(f"/access/rules?kind=topic&name={name}&applies=1")
    assert len(codes_of(applying)) >= 2
    question = f"/access/check?principal=User:{name}&operation=Write&kind=topic&name={name}"
    denied = visitor.get(question).text
    assert f"User:{name} may not Write on topic {name}" in denied
    assert f"rule: User:* may not Write on topics that begin with {name[:6]} from every host" in denied

    prefixed = [code for code in codes_of(applying) if name[:6] in code and "User:*" in code]
    shown = visitor.post("/access/rules/remove", [("rule", code) for code in prefixed])
    assert "These rules are removed, and no others" in shown.text
    assert f"may not Write on topic {name}" in visitor.get(question).text
    assert (
        "Removed 1 rule."
        in visitor.post("/access/rules/remove", [("confirmed", "1"), *[("rule", code) for code in prefixed]]).text
    )
    allowed = visitor.get(question).text
    assert f"User:{name} may Write on topic {name}" in allowed
    assert f"rule: User:{name} may Write on topic {name} from every host" in allowed
    assert "may not Read" in visitor.get(question.replace("Write", "Read")).text


@pytest.mark.skipif("TEST_SECURED_SERVER" in os.environ, reason="Apache Kafka does not show super.users")
def test_the_check_knows_super_users(visitor: Visitor) -> None:
    answer = visitor.get("/access/check?principal=User:root&operation=Alter&kind=cluster")
    assert "User:root may Alter on the cluster" in answer.text
    assert "super.users names the principal" in answer.text


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"principal": "alice", "topic": "t", "operation": "Read"}, "is not TYPE:NAME"),
        ({"principal": "User:a", "operation": "Read"}, "name a resource"),
        ({"principal": "User:a", "topic": "t", "operation": "Fly"}, "choose an operation"),
        ({"principal": "User:a", "group": "t", "operation": "Write"}, "is no operation on a group"),
    ],
)
def test_a_rule_that_cannot_be_added_is_explained(visitor: Visitor, fields: dict[str, str], words: str) -> None:
    answer = visitor.post("/access/rules", fields)
    assert answer.status == 422
    assert words in answer.text


@pytest.mark.parametrize(
    "code", ["", "{}", "[1]", '[2,"t",1,"User:a","*",3,3]', '[2,"t",3,"User:a","*",1,3]', '[2,null,3,"User:a","*",3,3]']
)
def test_only_exact_rules_are_removed(visitor: Visitor, code: str) -> None:
    """A form cannot remove rules by a filter, which could match more than was shown."""
    answer = visitor.post("/access/rules/remove", [("confirmed", "1"), ("rule", code)])
    assert answer.status == 422


def test_a_quota_is_set_listed_and_removed(visitor: Visitor, cluster: Cluster, new_name: Callable[[], str]) -> None:
    name = new_name()
    fields = {"user": name, "client-id-default": "on", "key": "producer_byte_rate", "limit": "1,048,576"}
    assert "producer_byte_rate = 1,048,576 bytes/s" in visitor.post("/access/quotas", fields).text
    entity = (Part("user", name), Part("client-id", None))
    assert read_quotas(cluster, entity)[entity] == {"producer_byte_rate": 1048576.0}
    page = visitor.get(f"/access/quotas?q={name}")
    assert f"user {name}, default client-id" in page.text
    (code,) = re.findall(r'name="entity" value="(\[.*?\])">', page.text)
    removed = visitor.post("/access/quotas/remove", {"entity": code, "key": "producer_byte_rate"})
    assert "Removed producer_byte_rate" in removed.text
    assert not read_quotas(cluster, entity)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"key": "producer_byte_rate", "limit": "1"}, "say whom the quota limits"),
        ({"user": "a", "ip": "10.0.0.1", "key": "producer_byte_rate", "limit": "1"}, "cannot be combined"),
        ({"user": "a", "user-default": "on", "key": "producer_byte_rate", "limit": "1"}, "give a name, or"),
        ({"user": "a", "key": "connection_creation_rate", "limit": "1"}, "has no quota connection_creation_rate"),
        ({"user": "a", "key": "producer_byte_rate", "limit": "-1"}, "greater than 0"),
        ({"user": "a", "key": "producer_byte_rate", "limit": "nan"}, "greater than 0"),
        ({"user": "a", "key": "producer_byte_rate", "limit": "many"}, "is not a number"),
    ],
)
def test_a_quota_that_cannot_be_set_is_explained(visitor: Visitor, fields: dict[str, str], words: str) -> None:
    answer = visitor.post("/access/quotas", fields)
    assert answer.status == 422
    assert words in answer.text


def test_hostile_names_are_shown_as_text(visitor: Visitor, new_name: Callable[[], str]) -> None:
    name = f"{new_name()}<script>alert(1)</script>\u202e"
    visible = name.replace("\u202e", "")
    assert (
        visitor.post("/access/users", {"name": name, "password": "a", "again": "a", "SCRAM-SHA-256": "on"}).status
        == 422
    )
    visitor.post("/access/users", {"name": visible, "password": "a", "again": "a", "SCRAM-SHA-256": "on"})
    visitor.post("/access/rules", {"principal": f"User:{visible}", "topic": "t", "operation": "Read"})
    visitor.post("/access/quotas", {"user": visible, "key": "producer_byte_rate", "limit": "1"})
    for path in ("/access", "/access/rules", "/access/quotas", f"/access/check?principal=User:{'%3Cscript%3E'}&name=x"):
        assert "<script>alert" not in visitor.get(path).source, path


def test_a_cluster_without_rules_says_so(bootstrap_server: str) -> None:
    with running_console(bootstrap_server) as address:
        assert "no access control lists" in Visitor(address).get("/access/rules").text


def test_rows_of_users_have_all_mechanisms() -> None:
    found = [Credential("b", "SCRAM-SHA-256", 4096), Credential("a", "SCRAM-SHA-256", 4096)]
    found.append(Credential("a", "SCRAM-SHA-512", 8192))
    rows = views.user_rows(found, "")
    assert [(row.name, row.mechanisms, row.iterations) for row in rows] == [
        ("a", "SCRAM-SHA-256, SCRAM-SHA-512", "4,096, 8,192"),
        ("b", "SCRAM-SHA-256", "4,096"),
    ]
    assert [row.name for row in views.user_rows(found, "B")] == ["b"]
