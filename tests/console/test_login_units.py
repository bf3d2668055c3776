"""Sessions, attempts, pending logins and paths: the rules of logins without a server."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from starlette.requests import Request

from odradek.console.login.attempts import (
    LONGEST_DELAY_S,
    MOST_OF_ADDRESS,
    MOST_OF_USER,
    WINDOW_S,
    Admission,
    LoginAttempts,
    network_of,
)
from odradek.console.login.logins import Session, Sessions, TooManyLogins, is_open, local_path
from odradek.console.login.oidc import (
    MOST_PENDING,
    MOST_PENDING_OF_ADDRESS,
    PENDING_S,
    LoginRefused,
    PendingLogins,
    challenge_of,
    parse_provider,
)
from odradek.console.pages.requests import client_address
from odradek.console.settings import ConsoleSettings

MOST, MOST_OF_ONE, IDLE_S, LONGEST_S = 6, 2, 10.0, 40.0


class SessionsModel(RuleBasedStateMachine):
    """Sessions against a model that keeps the times of each."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 0.0
        self.ended: list[str] = []
        self.sessions: Sessions[str] = Sessions(
            lambda: self.now_s,
            lambda session: self.ended.append(session.id),
            idle_timeout_s=IDLE_S,
            timeout_s=LONGEST_S,
            most=MOST,
            most_of_user=MOST_OF_ONE,
        )
        self.model: dict[str, tuple[str, float, float]] = {}  # user, end, end without requests
        self.latest_s: dict[str, float] = {}

    def is_live(self, session_id: str) -> bool:
        return self.now_s < min(self.model[session_id][1:])

    def live(self) -> list[str]:
        return [each for each in self.model if self.is_live(each)]

    @rule(user=st.sampled_from("abcd"), lifetime_s=st.sampled_from([None, 5.0, 100.0]))
    def begin(self, user: str, lifetime_s: float | None) -> None:
        own = [each for each in self.live() if self.model[each][0] == user]
        others = len(self.live()) - len(own)
        kept = min(len(own), MOST_OF_ONE - 1)
        if others + kept >= MOST:
            with pytest.raises(TooManyLogins):
                self.sessions.begin(user, lambda: user, lifetime_s)
            self.model = {each: facts for each, facts in self.model.items() if each not in self.ended}
            return
        session: Session[str] = self.sessions.begin(user, lambda: user, lifetime_s)
        assert session.id not in self.model
        assert len(session.id) == 43
        self.model = {each: facts for each, facts in self.model.items() if each not in self.ended}
        length_s = LONGEST_S if lifetime_s is None else min(LONGEST_S, lifetime_s)
        self.model[session.id] = (user, self.now_s + length_s, self.now_s + IDLE_S)
        self.latest_s[session.id] = self.now_s + LONGEST_S

    @precondition(lambda self: self.live())
    @rule(data=st.data(), lifetime_s=st.sampled_from([5.0, 100.0]))
    def extend(self, data: st.DataObject, lifetime_s: float) -> None:
        session_id = data.draw(st.sampled_from(self.live()))
        self.sessions.extend(session_id, lifetime_s)
        user, _, idle_ends_s = self.model[session_id]
        self.model[session_id] = (user, min(self.latest_s[session_id], self.now_s + lifetime_s), idle_ends_s)

    @precondition(lambda self: self.model)
    @rule(data=st.data(), is_use=st.booleans())
    def find(self, data: st.DataObject, is_use: bool) -> None:
        session_id = data.draw(st.sampled_from(list(self.model)))
        is_live = self.is_live(session_id)
        found = self.sessions.find(session_id, is_use=is_use)
        assert (found is not None) == is_live
        if not is_live:
            del self.model[session_id]
        elif is_use:
            user, ends_s, _ = self.model[session_id]
            self.model[session_id] = (user, ends_s, self.now_s + IDLE_S)

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        session_id = data.draw(st.sampled_from(list(self.model)))
        self.sessions.end(session_id)
        assert self.sessions.find(session_id) is None
        del self.model[session_id]

    @rule(seconds=st.sampled_from([1.0, 4.0, 11.0]))
    def wait(self, seconds: float) -> None:
        self.now_s += seconds

    @rule()
    def expire(self) -> None:
        self.sessions.end_expired()
        self.model = {each: self.model[each] for each in self.live()}
        assert len(self.sessions) == len(self.model)

    @invariant()
    def is_bounded(self) -> None:
        assert len(self.sessions) <= MOST
        assert len(set(self.ended)) == len(self.ended)  # each ends once


TestSessions = SessionsModel.TestCase
TestSessions.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def test_attempts_are_limited_by_address_and_by_user_at_an_address() -> None:
    now = [0.0]
    attempts = LoginAttempts(lambda: now[0])
    assert not any(attempts.begin("10.0.0.1", "ann").refused_s for _ in range(MOST_OF_USER))
    assert attempts.begin("10.0.0.1", "ann").refused_s == WINDOW_S
    assert not attempts.begin("10.0.0.1", "ben").refused_s
    assert not any(attempts.begin("10.9.9.9", f"user-{n}").refused_s for n in range(MOST_OF_ADDRESS))
    assert attempts.begin("10.9.9.9", "another").refused_s == WINDOW_S
    now[0] = WINDOW_S + 1
    assert attempts.begin("10.0.0.1", "ann") == Admission()


def test_guesses_from_many_addresses_delay_a_user_and_lock_nobody_out() -> None:
    now = [0.0]
    attempts = LoginAttempts(lambda: now[0])
    delays = [attempts.begin(f"10.0.{n}.1", "ann") for n in range(MOST_OF_USER + 30)]
    assert not any(each.refused_s for each in delays)
    assert [each.delay_s for each in delays[MOST_OF_USER - 1 :][:3]] == [0, 1, 2]
    assert delays[-1].delay_s == LONGEST_DELAY_S
    assert attempts.begin("10.0.1.1", "ben") == Admission()
    now[0] = WINDOW_S + 1
    assert attempts.begin("10.0.99.1", "ann") == Admission()


def test_one_network_of_ipv6_and_both_writings_of_ipv4_count_as_one_address() -> None:
    attempts = LoginAttempts(lambda: 0.0)
    assert not any(attempts.begin(f"2001:db8::{n:x}", f"user-{n}").refused_s for n in range(MOST_OF_ADDRESS))
    assert attempts.begin("2001:db8::ffff", "another").refused_s
    assert not attempts.begin("2001:db8:0:1::1", "another").refused_s
    assert network_of("::ffff:10.0.0.1") == network_of("10.0.0.1")


def test_attempts_take_bounded_memory_and_successes_do_not_count() -> None:
    attempts = LoginAttempts(lambda: 0.0, most_names=10)
    for n in range(100):
        attempts.begin(f"10.0.{n}.1", f"user-{n}")
    assert len(attempts) == 10
    for _ in range(100):
        assert attempts.begin("10.1.1.1", "ann") == Admission()
        attempts.forgive("10.1.1.1", "ann")


@pytest.mark.parametrize(
    ("lines", "address"),
    [
        (["1.2.3.4, 203.0.113.9"], "203.0.113.9"),
        (["1.2.3.4", "203.0.113.9"], "203.0.113.9"),
        (["1.2.3.4", "5.6.7.8", "9.9.9.9, 2001:db8::1"], "2001:db8::1"),
        (["1.2.3.4, 203.0.113.9:51234"], "203.0.113.9"),
        (["[2001:db8::1]:443"], "2001:db8::1"),
        (["1.2.3.4, unknown"], "127.0.0.1"),
        (["1.2.3.4", ""], "127.0.0.1"),
        ([], "127.0.0.1"),
    ],
)
def test_the_client_is_the_last_address_of_all_lines_that_a_proxy_forwards(lines: list[str], address: str) -> None:
    scope = {
        "type": "http",
        "headers": [(b"x-forwarded-for", line.encode()) for line in lines],
        "client": ("127.0.0.1", 50_000),
    }
    for is_behind_proxy, expected in ((True, address), (False, "127.0.0.1")):
        settings = ConsoleSettings(is_behind_proxy=is_behind_proxy)
        app = SimpleNamespace(state=SimpleNamespace(settings=settings))
        assert client_address(Request({**scope, "app": app})) == expected


@pytest.mark.parametrize(
    "text",
    [
        "https://evil.example", "//evil.example", "///evil.example", "/\\evil.example", "\\/evil", "evil", "",
        "javascript:alert(1)", "/a\nb", "/\x00", "/login", "/login?next=/", "/" + "a" * 2000,
    ],
)  # fmt: skip
def test_only_paths_of_the_console_follow_a_login(text: str) -> None:
    assert local_path(text) == "/"


def test_a_path_of_the_console_is_kept() -> None:
    assert local_path("/topics?q=a%2Fb&sort=size") == "/topics?q=a%2Fb&sort=size"


def test_few_paths_are_open() -> None:
    assert is_open("/login")
    assert is_open("/assets/console.css")
    for path in ("/", "/logout", "/login/", "/assets", "/assets/../topics", "/access", "//login"):
        assert not is_open(path), path


def test_a_pending_login_belongs_to_its_browser_and_counts_once() -> None:
    now = [0.0]
    pending = PendingLogins(lambda: now[0], most=3)
    state, login = pending.begin("browser", "/topics", "http://127.0.0.1/login/callback", "10.0.0.1")
    with pytest.raises(LoginRefused):
        pending.take(state, "another browser")
    assert pending.take(state, "browser") == login
    with pytest.raises(LoginRefused):
        pending.take(state, "browser")
    state, _ = pending.begin("browser", "/", "x", "10.0.0.1")
    now[0] = PENDING_S
    with pytest.raises(LoginRefused, match="too long"):
        pending.take(state, "browser")
    for _ in range(10):
        pending.begin("browser", "/", "x", "10.0.0.1")
    assert len(pending) == 3


def test_pending_logins_of_one_network_drop_those_of_no_other() -> None:
    pending = PendingLogins(lambda: 0.0)
    state, login = pending.begin("browser", "/", "x", "10.0.0.1")
    for number in range(2 * MOST_PENDING):
        pending.begin("attacker", "/", "x", f"2001:db8::{number:x}")
    assert pending.take(state, "browser") == login
    assert len(pending) == MOST_PENDING_OF_ADDRESS


def test_the_challenge_is_that_of_rfc_7636() -> None:
    assert challenge_of("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk") == "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"


@pytest.mark.parametrize(
    "change",
    [{"issuer": "https://other.example"}, {"token_endpoint": "http://issuer.example/token"}, {"jwks_uri": None}],
)
def test_a_discovery_document_that_cannot_be_trusted_is_refused(change: dict[str, object]) -> None:
    issuer = "https://issuer.example"
    document = {
        "issuer": issuer,
        "authorization_endpoint": f"{issuer}/authorize",
        "token_endpoint": f"{issuer}/token",
        "jwks_uri": f"{issuer}/keys",
    }
    assert parse_provider(issuer, document).token_endpoint == f"{issuer}/token"
    with pytest.raises(LoginRefused):
        parse_provider(issuer, {**document, **change})
