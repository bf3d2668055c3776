"""The protection against other pages, other machines and hostile records."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse

from odradek.console.server import listen
from odradek.console.settings import ConsoleSettings
from odradek.console.web.safety import COOKIE, POLICY, Safety, Tokens, refusal, session_of
from odradek.conventions.failures import Failure
from tests.console.conftest import Visitor, running_console

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.mark.parametrize(
    "other",
    [
        "theme=dark",
        'state={"open": 1}',
        "a[b]=1",
        "flag",
        "city=Zürich",
        'quoted="a',
        f"{COOKIE}=short",
        f"{COOKIE}2=x",
    ],
)
def test_session_is_found_beside_any_cookie_of_another_program_on_the_host(other: str) -> None:
    session = Tokens().new_session()
    for cookies in (f"{other}; {COOKIE}={session}", f"{COOKIE}={session}; {other}"):
        assert session_of(Headers({"cookie": cookies})) == session


@pytest.mark.parametrize("cookies", ["", "theme=dark", f"{COOKIE}=", f"{COOKIE}=short", f"x{COOKIE}={'a' * 43}"])
def test_request_without_a_session_has_none(cookies: str) -> None:
    assert session_of(Headers({"cookie": cookies})) == ""


@pytest.mark.parametrize("host", ["127.0.0.1:8484", "localhost", "LOCALHOST:1", "[::1]:8484", "127.8.8.8"])
def test_hosts_of_this_machine_are_served(host: str) -> None:
    assert refusal("GET", Headers({"host": host}), is_read_only=False) == ""


@pytest.mark.parametrize(
    "host", ["", "evil.example", "localhost.evil.example", "10.0.0.7:8484", "[::2]", "127.0.0.1.nip.io"]
)
def test_other_hosts_are_refused_against_dns_rebinding(host: str) -> None:
    assert "is not this console's" in refusal("GET", Headers({"host": host}), is_read_only=False)


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "http://localhost:1"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_a_form_of_another_page_is_refused(headers: dict[str, str]) -> None:
    assert "was sent by another" in refusal("POST", Headers({"host": "localhost:2", **headers}), is_read_only=False)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.4", "console.example"])
def test_an_address_that_others_reach_needs_a_login(host: str) -> None:
    with pytest.raises(Failure, match="it has no login"):
        listen(ConsoleSettings(host=host, port=0))


def test_a_request_with_a_foreign_host_gets_nothing(visitor: Visitor) -> None:
    answer = visitor.get("/", Host="evil.example")
    assert answer.status == 403
    assert "evil.example" in answer.text
    assert "Overview" not in answer.text


def test_every_answer_has_the_policy(visitor: Visitor, topic: str) -> None:
    for path in ("/", "/topics", f"/topics/{topic}", "/assets/console.js", "/nowhere", "/groups", "/brokers"):
        answer = visitor.get(path)
        assert answer.headers["content-security-policy"] == POLICY, path
        assert answer.headers["x-content-type-options"] == "nosniff"
    assert "unsafe" not in POLICY


def test_pages_have_no_inline_script_and_no_inline_style(visitor: Visitor, topic: str) -> None:
    of_topic = [f"/topics/{topic}{part}" for part in ("", "/partitions", "/groups", "/settings")]
    for path in ("/", "/topics", "/new-topic", *of_topic, "/groups", "/brokers"):
        source = visitor.get(path).source
        assert "style=" not in source, path
        assert "<style" not in source
        assert "onclick=" not in source
        assert source.count("<script") == source.count('<script src="/assets/')


def test_the_cookie_is_kept_from_scripts_and_other_sites(console_address: str) -> None:
    cookie = Visitor(console_address).get("/").headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie


@pytest.mark.parametrize("token", ["", "0" * 64])
def test_a_change_without_the_token_is_refused(visitor: Visitor, new_name: Callable[[], str], token: str) -> None:
    name = new_name()
    answer = visitor.post("/new-topic", {"name": name}, token=token)
    assert answer.status == 403
    assert visitor.get(f"/topics/{name}").status == 404


def test_the_token_of_another_session_is_refused(visitor: Visitor, console_address: str) -> None:
    other = Visitor(console_address)
    other.get("/new-topic")
    assert visitor.post("/new-topic", {"name": "x"}, token=other.token).status == 403


def test_a_read_only_console_shows_and_changes_nothing(bootstrap_server: str, topic: str) -> None:
    with running_console(bootstrap_server, is_read_only=True) as address:
        visitor = Visitor(address)
        for path in (f"/topics/{topic}", f"/topics/{topic}/partitions", f"/topics/{topic}/settings"):
            page = visitor.get(path)
            assert page.status == 200
            assert "Delete topic" not in page.text
            assert 'method="post"' not in page.source
        answer = visitor.post(f"/topics/{topic}/delete", {"confirmation": topic})
        assert answer.status == 403
        assert "read-only" in answer.text
        assert visitor.get(f"/topics/{topic}").status == 200


def test_a_form_that_is_too_large_is_refused(visitor: Visitor, topic: str) -> None:
    answer = visitor.post(f"/topics/{topic}", {"value": "x" * 3_000_000})
    assert answer.status == 400
    assert "larger than" in answer.text


def test_a_record_is_shown_as_text(visitor: Visitor, topic: str, produce: Callable[..., None]) -> None:
    hostile = '<script>alert(1)</script><img src=x onerror="alert(2)">'
    produce(topic, (hostile, hostile), headers=[(hostile, hostile.encode())], partition=0)
    for path in (f"/topics/{topic}", f"/topics/{topic}/record?partition=0&offset=0"):
        answer = visitor.get(path)
        assert hostile in answer.text
        assert "<script>alert" not in answer.source
        assert "<img" not in answer.source
    stream = visitor.get(f"/topics/{topic}/search?start=oldest&text=alert")
    assert "<script>" not in stream.source
    assert "&lt;script&gt;" in stream.source


async def headers_of(application: Any, host: str = "localhost", public_url: str = "") -> tuple[int, Headers]:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "http.request"}

    scope = {"type": "http", "method": "GET", "path": "/", "headers": [(b"host", host.encode())]}
    await Safety(application, Tokens(), ConsoleSettings("localhost", public_url=public_url))(scope, receive, send)
    return sent[0]["status"], Headers(raw=sent[0]["headers"])


async def test_a_bug_is_answered_with_the_same_headers(caplog: pytest.LogCaptureFixture) -> None:
    async def broken(_scope: Any, _receive: Any, _send: Any) -> None:
        raise ZeroDivisionError

    status, headers = await headers_of(broken)
    assert status == 500
    assert headers["content-security-policy"] == POLICY
    assert "ZeroDivisionError" in caplog.text


@pytest.mark.parametrize(
    ("host", "is_https", "is_sent"),
    [
        ("console.example", True, True),
        ("Console.example:8484", True, True),
        ("console.example", False, False),
        ("localhost:8484", True, False),  # it would hold for other programs of this machine
        ("other.example", True, False),
    ],
)
async def test_browsers_are_told_to_use_https_only(host: str, is_https: bool, is_sent: bool) -> None:
    public_url = f"{'https' if is_https else 'http'}://console.example"
    _, headers = await headers_of(PlainTextResponse("page"), host, public_url)
    assert headers.get("strict-transport-security") == ("max-age=31536000" if is_sent else None)


HOSTILE = "\x1b[31mred\x1b[0m \u202egnp.exe\u202c \u200bzero"


@pytest.mark.parametrize("value", [HOSTILE, json.dumps({HOSTILE: [HOSTILE]}, ensure_ascii=False)])
def test_characters_that_hide_or_reorder_others_are_escapes(
    visitor: Visitor, topic: str, produce: Callable[..., None], value: str
) -> None:
    produce(topic, (HOSTILE, value), headers=[(HOSTILE, HOSTILE.encode())], partition=0)
    paths = [f"/topics/{topic}", f"/topics/{topic}/record?partition=0&offset=0"]
    paths += [
        f"/topics/{topic}/record?partition=0&offset=0&format=text",
        f"/topics/{topic}/search?start=oldest&text=red",
    ]
    for path in paths:
        source = visitor.get(path).source
        assert "gnp.exe" in source
        for character in "\x1b\u202e\u202c\u200b":
            assert character not in source, (path, character)


def test_no_page_can_be_framed(visitor: Visitor, topic: str) -> None:
    for path in ("/", "/topics", f"/topics/{topic}", "/access", "/nowhere"):
        answer = visitor.get(path)
        assert answer.headers["x-frame-options"] == "DENY"
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]


def test_a_link_of_another_site_does_not_replace_the_session(visitor: Visitor) -> None:
    before = dict(visitor.cookies)
    answer = visitor.get("/topics", sec_fetch_site="cross-site", sec_fetch_mode="navigate")
    assert answer.status == 200
    assert "set-cookie" not in answer.headers
    assert visitor.cookies == before


def test_another_site_cannot_load_pages_in_the_background(visitor: Visitor) -> None:
    for mode in ("cors", "no-cors"):
        assert visitor.get("/topics", sec_fetch_site="cross-site", sec_fetch_mode=mode).status == 403


def test_a_redirect_after_a_change_stays_on_the_console(visitor: Visitor, topic: str) -> None:
    body = urlencode({"token": visitor.token, "target": "//evil.example", "record": "0:0"})
    answer = visitor.request("POST", f"/topics/{topic}/replay", body)
    assert not answer.headers.get("location", "/").startswith("//")
