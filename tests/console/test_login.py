"""Logins with users of the cluster: every page is made over the connections of its user."""

from __future__ import annotations

import http.client
import time
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

import pytest
from confluent_kafka import Consumer, TopicPartition

from odradek.admin.acls import Access, Selection
from odradek.admin.users import set_password
from odradek.console.settings import SaslLogin
from odradek.pipelines.operating.status_record import TOPIC as STATUS_TOPIC
from odradek.security.authorizer import Operation
from tests.console.conftest import Visitor, running_console
from tests.console.secured import MECHANISM, PASSWORDS, SASL, SecuredCluster, allow, secured_cluster
from tests.server.sasl_broker import ALICE
from tests.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def secured() -> Iterator[SecuredCluster]:
    with secured_cluster() as cluster:
        yield cluster


@pytest.fixture(scope="module")
def address(secured: SecuredCluster) -> Iterator[str]:
    with running_console(secured.address, SASL, login=SaslLogin(MECHANISM)) as console:
        yield console


def visitor_of(address: str, user: str) -> Visitor:
    visitor = Visitor(address)
    assert visitor.log_in(user, PASSWORDS[user]).status == 200
    return visitor


def test_users_of_scram_log_in_where_the_console_itself_uses_plain(secured: SecuredCluster) -> None:
    """As after `secure init --sasl`, which gives the admin a password of PLAIN; `user add` adds users of SCRAM."""
    with running_console(secured.address, {**SASL, "sasl.mechanisms": "PLAIN"}, login=SaslLogin("PLAIN")) as address:
        for user, password, status in (
            ("ann", PASSWORDS["ann"], 200),
            ("alice", ALICE["sasl.password"], 200),  # of PLAIN
            ("ann", "wrong", 401),
        ):
            assert Visitor(address).log_in(user, password).status == status, user


def log_out(visitor: Visitor) -> None:
    """A user has at most five sessions: with one more, the oldest, which other tests share, would end."""
    visitor.get("/topics")
    assert "You are logged out." in visitor.post("/logout", {}).text


@pytest.fixture(scope="module")
def ann(address: str) -> Visitor:
    return visitor_of(address, "ann")


@pytest.fixture(scope="module")
def ben(address: str) -> Visitor:
    return visitor_of(address, "ben")


@pytest.fixture(scope="module")
def admin(address: str) -> Visitor:
    return visitor_of(address, "admin")


PATHS = ["/", "/topics", "/topics/ann-orders", "/topics/ann-orders/export", "/groups", "/access", "/nowhere"]


@pytest.mark.parametrize("path", PATHS)
def test_nothing_is_shown_without_a_login(address: str, path: str) -> None:
    answer = Visitor(address).get(path)
    assert answer.status == 303
    assert answer.headers["location"].startswith("/login")
    assert b"orders" not in answer.body


def test_streams_and_forms_without_a_login_are_refused(address: str) -> None:
    visitor = Visitor(address)
    visitor.get("/login")
    assert visitor.get("/topics/ann-orders/tail", accept="text/event-stream").status == 401
    assert visitor.post("/topics/ann-orders/delete", {"confirmation": "ann-orders"}).status == 401
    panel = visitor.get("/overview/panel", hx_request="true")
    assert (panel.status, panel.headers["hx-redirect"]) == (401, "/login")


@pytest.mark.parametrize(("user", "password"), [("ann", "wrong"), ("nobody", "wrong"), ("ann\0x", "x"), ("", "")])
def test_refusals_are_the_same_whether_or_not_a_user_exists(address: str, user: str, password: str) -> None:
    visitor = Visitor(address)
    answer = visitor.log_in(user, password)
    assert answer.status == 401
    assert "The user or the password is wrong." in answer.text
    assert visitor.get("/").status == 303


def test_a_login_needs_the_token_of_the_login_page(address: str) -> None:
    visitor = Visitor(address)
    visitor.get("/login")
    answer = visitor.post("/login", {"user": "ann", "password": PASSWORDS["ann"]}, token="0" * 64)
    assert answer.status == 403


def test_a_session_gets_a_new_id(address: str) -> None:
    """An id that another has set in the browser is not that of the session (session fixation)."""
    visitor = Visitor(address)
    visitor.cookies["odradek_console"] = "A" * 43
    visitor.log_in("ann", PASSWORDS["ann"])
    assert visitor.cookies["odradek_console"] != "A" * 43
    log_out(visitor)
    attacker = Visitor(address)
    attacker.cookies["odradek_console"] = "A" * 43
    assert attacker.get("/topics").status == 303


def test_a_cookie_has_no_credentials(ann: Visitor) -> None:
    assert set(ann.cookies) <= {"odradek_console", "odradek_notice"}
    assert "ann" not in ann.cookies["odradek_console"]


def test_each_user_sees_the_own_topics(ann: Visitor, ben: Visitor, admin: Visitor) -> None:
    for visitor, own, other in ((ann, "ann-orders", "ben-orders"), (ben, "ben-orders", "ann-orders")):
        for path in ("/", "/topics", "/topics?q=orders"):
            page = visitor.get(path)
            assert own in page.text or path == "/"
            assert other not in page.text, path
    both = admin.get("/topics").text
    assert "ann-orders" in both
    assert "ben-orders" in both


def test_records_of_others_are_not_allowed_and_the_page_says_why(ann: Visitor) -> None:
    assert "record of ann-orders" in ann.get("/topics/ann-orders").text
    for path in ("", "/partitions", "/groups", "/record?partition=0&offset=0"):
        answer = ann.get(f"/topics/ben-orders{path}")
        assert answer.status == 403, path
        assert "not allowed: needs Describe on topic ben-orders" in answer.text
        assert "record of ben-orders" not in answer.text
    stream = ann.get("/topics/ben-orders/search?text=record&start=oldest", accept="text/event-stream")
    assert "needs Describe on topic ben-orders" in stream.text


def test_records_need_read_and_a_topic_needs_describe(ann: Visitor) -> None:
    assert ann.get("/topics/ann-seen/partitions").status == 200
    page = ann.get("/topics/ann-seen")
    assert page.status == 403
    assert "not allowed: needs Read on topic ann-seen" in page.text
    with pytest.raises(http.client.IncompleteRead) as cut:
        ann.get("/topics/ann-seen/export?start=oldest")
    assert b"not allowed: needs Read on topic ann-seen" in cut.value.partial
    assert b"record of" not in cut.value.partial


def test_settings_are_fields_where_the_user_may_change_them(ann: Visitor, secured: SecuredCluster) -> None:
    def settings() -> str:
        return ann.get("/topics/ann-seen/settings?q=retention.ms").text

    cluster, topic = secured.as_super_user(), Selection(topics=("ann-seen",))
    allow(cluster, "User:ann", topic, Access((Operation.DESCRIBE_CONFIGS,)))
    page = settings()
    assert "604800000" in page
    assert "not allowed: needs AlterConfigs on topic ann-seen" in page
    assert "<button>Set</button>" not in page
    allow(cluster, "User:ann", topic, Access((Operation.ALTER_CONFIGS,)))
    assert "<button>Set</button>" in settings()
    assert "needs AlterConfigs" not in settings()


def test_the_lag_in_time_needs_read_on_the_topics(ann: Visitor, secured: SecuredCluster) -> None:
    """Caught up in one topic and not allowed to read another, a group is not up to date."""
    consumer = Consumer({"bootstrap.servers": secured.plain_address, "group.id": "ann-group"})
    offsets = [TopicPartition("ann-orders", 0, 1), TopicPartition("ann-seen", 0, 0)]
    consumer.commit(offsets=offsets, asynchronous=False)
    consumer.close()
    page = ann.get("/group?name=ann-group")
    assert page.status == 200
    assert "not allowed: the lag in time needs Read on the topics of the group" in page.text
    assert "not known of 1 partition behind" in page.text


def test_live_figures_are_those_of_the_own_topics(ann: Visitor, ben: Visitor) -> None:
    for visitor, other in ((ann, "ben-orders"), (ben, "ann-orders")):
        assert other not in visitor.get("/overview/panel", hx_request="true").text


def test_a_change_without_the_right_names_the_permission(ann: Visitor) -> None:
    ann.get("/topics/ann-orders")
    page = ann.post("/topics/ann-orders", {"value": "x"})
    assert "not allowed: needs Write on topic ann-orders" in page.text
    assert (
        "needs Delete on topic ann-orders" in ann.post("/topics/ann-orders/delete", {"confirmation": "ann-orders"}).text
    )
    assert "needs Create on topic new" in ann.post("/new-topic", {"name": "new"}).text
    assert "needs Alter on topic ann-orders" in ann.post("/topics/ann-orders/partitions", {"partitions": "2"}).text


def test_parts_that_are_not_allowed_do_not_break_a_page(ann: Visitor) -> None:
    for path, words in {
        "/": "Sizes are not shown: not allowed: needs Describe on the cluster",
        "/brokers": "needs Describe on the cluster",
        "/access": "Users cannot be listed: not allowed: needs Describe on the cluster",
        "/access/rules": "Rules cannot be listed: not allowed: needs Describe on the cluster",
        "/access/quotas": "Quotas cannot be listed: not allowed: needs DescribeConfigs on the cluster",
    }.items():
        answer = ann.get(path)
        assert answer.status == 200, path
        assert words in answer.text, path
    for path in ("/groups", "/transactions", "/topics"):
        assert ann.get(path).status == 200, path
    assert "needs DescribeConfigs on topic ann-orders" in ann.get("/topics/ann-orders/settings").text


@pytest.fixture(scope="module")
def published(secured: SecuredCluster) -> None:
    """Pipelines and rigs, of which `ann` may see that their topics exist."""
    cluster = secured.as_super_user()
    producer = cluster.producer({})
    for topic in (STATUS_TOPIC, "rigs", "warnings"):
        assert cluster.create_topic(topic, 1, 1)
        producer.produce(topic, b"{}", b"key")
        allow(cluster, "User:ann", Selection(topics=(topic,)), Access((Operation.DESCRIBE,)))
    assert producer.flush(60) == 0


@pytest.mark.usefixtures("published")
@pytest.mark.parametrize(("user", "operation"), [("ann", "Read"), ("ben", "Describe")])
def test_pipelines_that_may_not_be_read_are_explained(
    request: pytest.FixtureRequest, user: str, operation: str
) -> None:
    visitor: Visitor = request.getfixturevalue(user)
    reason = f"not allowed: needs {operation} on topic {STATUS_TOPIC}"
    eventually(lambda: reason in visitor.get("/pipelines").text)
    began_at = time.monotonic()
    for _ in range(40):  # the reason stays while the console tries again
        assert reason in visitor.get("/pipelines/table").text
        time.sleep(0.1)  # a poll's pause
    assert time.monotonic() - began_at < 40  # each request that waits holds a thread for 3 seconds


@pytest.mark.usefixtures("published")
def test_rigs_that_may_not_be_read_are_explained(ann: Visitor) -> None:
    eventually(lambda: ann.get("/examples/rigs").status == 200)
    connection = http.client.HTTPConnection(ann.host, ann.port, timeout=60)
    cookies = "; ".join(f"{name}={value}" for name, value in ann.cookies.items())
    connection.request("GET", "/events/examples/rigs", headers={"Cookie": cookies})
    response = connection.getresponse()
    eventually(lambda: b"not allowed: needs Read on topic" in response.readline())
    connection.close()


def test_a_group_of_others_is_not_allowed(ann: Visitor) -> None:
    answer = ann.get("/group?name=ben-group")
    assert answer.status == 403
    assert "not allowed: needs Describe on group ben-group" in answer.text


def test_a_user_writes_as_himself(ben: Visitor) -> None:
    ben.get("/topics/ben-orders")
    assert "Wrote a record" in ben.post("/topics/ben-orders", {"value": "by ben"}).text


def test_a_logout_ends_the_session_for_good(address: str) -> None:
    visitor = visitor_of(address, "ann")
    visitor.get("/new-topic")
    kept = dict(visitor.cookies)
    assert "You are logged out." in visitor.post("/logout", {}).text
    assert visitor.get("/topics").status == 303
    visitor.cookies = kept
    assert visitor.get("/topics").status == 303


def test_a_login_does_not_lead_to_other_sites(address: str) -> None:
    for target in ("https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)", "/\t/evil"):
        visitor = Visitor(address)
        visitor.get("/login")
        body_fields = {"user": "ann", "password": PASSWORDS["ann"], "next": target, "token": visitor.token}
        answer = visitor.request("POST", "/login", urlencode(body_fields))
        assert (answer.status, answer.headers["location"]) == (303, "/"), target
        log_out(visitor)


def test_the_page_that_was_wanted_follows_the_login(address: str) -> None:
    visitor = Visitor(address)
    answer = visitor.get("/topics?q=ann")
    assert answer.headers["location"] == "/login?next=%2Ftopics%3Fq%3Dann"
    assert 'value="/topics?q=ann"' in visitor.get(answer.headers["location"]).source


def test_the_address_that_follows_the_login_stays_encoded(address: str) -> None:
    visitor = Visitor(address)
    for group in ("a%3Fb", "a%23b", "a%2Fb", "a%25b"):
        wanted = f"/groups/{group}?page=1"
        login = visitor.get(wanted).headers["location"]
        assert login == f"/login?next={quote(wanted, safe='')}"
    visitor.get(login)
    fields = {"user": "admin", "password": PASSWORDS["admin"], "next": wanted, "token": visitor.token}
    answer = visitor.request("POST", "/login", urlencode(fields))
    assert (answer.status, answer.headers["location"]) == (303, wanted)


def test_too_many_failed_logins_are_refused_even_with_the_right_password(secured: SecuredCluster) -> None:
    with running_console(secured.address, SASL, login=SaslLogin(MECHANISM)) as address:
        visitor = Visitor(address)
        for _ in range(10):
            assert visitor.log_in("ann", "wrong").status == 401
        answer = visitor.log_in("ann", PASSWORDS["ann"])
        assert answer.status == 429
        assert "Too many failed logins" in answer.text
        assert visitor.log_in("ben", PASSWORDS["ben"]).status == 200
        for _ in range(10):  # a user that does not exist is limited in the same way
            assert visitor.log_in("nobody", "wrong").status in (401, 429)
        assert visitor.log_in("nobody", "wrong").status == 429


def test_a_session_ends_after_the_idle_time(secured: SecuredCluster) -> None:
    with running_console(secured.address, SASL, login=SaslLogin(MECHANISM), idle_timeout_s=3) as address:
        visitor = visitor_of(address, "ann")

        def panel() -> int:
            return visitor.get("/overview/panel", hx_request="true", hx_trigger="panel").status

        eventually(lambda: panel() == 401)  # requests that a page makes by itself do not extend the session


def test_a_read_only_console_has_a_login(secured: SecuredCluster) -> None:
    with running_console(secured.address, SASL, login=SaslLogin(MECHANISM), is_read_only=True) as address:
        visitor = visitor_of(address, "admin")
        assert visitor.get("/topics").status == 200
        assert visitor.post("/access/users", {"name": "x"}).status == 403
        visitor.get("/topics")
        assert "logged out" in visitor.post("/logout", {}).text


def test_a_user_who_changes_the_own_password_logs_in_again(secured: SecuredCluster) -> None:
    set_password(secured.as_super_user(), "admin2", "one", {MECHANISM: 4096})
    allow(secured.as_super_user(), "User:admin2", Selection(cluster=True), Access((Operation.ALL,)))
    with running_console(secured.address, SASL, login=SaslLogin(MECHANISM)) as address:
        visitor = Visitor(address)
        visitor.log_in("admin2", "one")
        answer = visitor.post("/access/users/password", {"name": "admin2", "password": "two", "again": "two"})
        assert "Log in with the new one" in answer.text
        assert visitor.log_in("admin2", "one").status == 401
        assert visitor.log_in("admin2", "two").status == 200


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("/access/users/password", {"name": "eve", "password": "two", "again": "two"}),
        ("/access/users/remove", {"name": "eve", "confirmation": "eve"}),
    ],
)
def test_a_change_of_credentials_ends_all_sessions_of_the_user(
    secured: SecuredCluster, path: str, fields: dict[str, str]
) -> None:
    set_password(secured.as_super_user(), "eve", "one", {MECHANISM: 4096})
    with running_console(secured.address, SASL, login=SaslLogin(MECHANISM)) as address:
        browsers = [Visitor(address), Visitor(address)]
        for browser in browsers:
            assert browser.log_in("eve", "one").status == 200
            assert browser.get("/topics").status == 200
        admin = visitor_of(address, "admin")
        assert "user eve." in admin.post(path, fields).text
        assert [browser.get("/topics").status for browser in browsers] == [303, 303]
        assert admin.get("/topics").status == 200


def test_the_cluster_that_is_down_does_not_count_as_a_failed_login() -> None:
    with running_console("127.0.0.1:1", SASL, login=SaslLogin(MECHANISM)) as address:
        visitor = Visitor(address)
        for _ in range(12):
            answer = visitor.log_in("ann", "x")
            assert answer.status == 502
            assert "no broker answers" in answer.text
