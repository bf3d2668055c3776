"""The order of requests on a SASL connection, sessions that end, and random orders that never authenticate."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.protocol.errors import ErrorCode
from odradek.security.principals import Principal
from odradek.security.sasl.authentication import Authentication, Times
from odradek.security.sasl.outcome import Authenticated, Challenge, Failed, Outcome
from tests.example_counts import examples

PRODUCE, HANDSHAKE, VERSIONS, AUTHENTICATE = 0, 17, 18, 36


class OneStep:
    """Authenticates the user that a message names, unless it is `bad`; `more` asks for another message."""

    def evaluate(self, response: bytes) -> Outcome:
        if response == b"more":
            return Challenge(b"challenge")
        if response == b"bad":
            return Failed("for the log")
        name, _, expires = response.decode().partition(":")
        return Authenticated(name, b"final", int(expires) if expires else None)


class Listener:
    names = ("PLAIN", "SCRAM-SHA-256")

    def __init__(self, longest_session_ms: int = 0) -> None:
        self._longest_session_ms = longest_session_ms

    def begin(self, name: str) -> OneStep:
        return OneStep()

    def longest_session_ms(self, name: str) -> int:
        return self._longest_session_ms


def at(ms: int) -> Times:
    return Times(1_000_000 + ms, float(ms))


def authenticated(longest_session_ms: int = 0, user: bytes = b"alice") -> Authentication:
    state = Authentication(Listener(longest_session_ms))
    assert state.handshake("PLAIN", 1, at(0)).error is ErrorCode.NONE
    assert state.authenticate(user, at(0)).error is ErrorCode.NONE
    return state


def test_versions_handshake_and_authentication_come_in_this_order() -> None:
    state = Authentication(Listener())
    assert state.refuse(VERSIONS, 0) is None
    state.ask_for_versions()
    assert state.refuse(VERSIONS, 0) is not None
    assert state.refuse(AUTHENTICATE, 0) is not None
    assert state.refuse(PRODUCE, 0) is not None
    assert state.refuse(HANDSHAKE, 0) is None
    assert state.handshake("PLAIN", 1, at(0)).mechanisms == Listener.names
    assert state.refuse(PRODUCE, 0) is not None
    assert state.authenticate(b"more", at(0)).data == b"challenge"
    assert not state.is_unrestricted
    step = state.authenticate(b"alice", at(0))
    assert (step.data, step.session_lifetime_ms) == (b"final", 0)
    assert state.principal == Principal("User", "alice")
    assert state.is_unrestricted
    assert state.refuse(PRODUCE, 1e9) is None


def test_a_mechanism_that_is_not_enabled_is_refused_with_the_list() -> None:
    step = Authentication(Listener()).handshake("GSSAPI", 1, at(0))
    assert (step.error, step.mechanisms) == (ErrorCode.UNSUPPORTED_SASL_MECHANISM, Listener.names)
    assert step.failure is not None


def test_a_second_handshake_is_refused() -> None:
    state = Authentication(Listener())
    state.handshake("PLAIN", 1, at(0))
    assert state.refuse(HANDSHAKE, 0) is None
    step = state.handshake("PLAIN", 1, at(0))
    assert step.error is ErrorCode.ILLEGAL_SASL_STATE
    assert step.failure is not None
    assert state.refuse(AUTHENTICATE, 0) is not None


def test_a_failure_tells_the_client_the_mechanism_only() -> None:
    state = Authentication(Listener())
    state.handshake("SCRAM-SHA-256", 1, at(0))
    step = state.authenticate(b"bad", at(0))
    assert step.error is ErrorCode.SASL_AUTHENTICATION_FAILED
    assert step.message == (
        "Authentication failed during authentication due to invalid credentials with SASL mechanism SCRAM-SHA-256"
    )
    assert step.failure == "for the log"
    assert all(state.refuse(key, 0) is not None for key in (PRODUCE, HANDSHAKE, VERSIONS, AUTHENTICATE))


def test_version_0_is_followed_by_raw_tokens() -> None:
    state = Authentication(Listener())
    state.handshake("PLAIN", 0, at(0))
    assert state.expects_raw_token
    state.authenticate(b"alice", at(0))
    assert not state.expects_raw_token


def test_without_a_session_end_a_second_authentication_is_an_error_that_keeps_the_connection() -> None:
    state = authenticated()
    handshake = state.handshake("PLAIN", 1, at(5000))
    assert (handshake.error, handshake.failure) == (ErrorCode.ILLEGAL_SASL_STATE, None)
    step = state.authenticate(b"alice", at(5000))
    assert (step.error, step.failure) == (ErrorCode.ILLEGAL_SASL_STATE, None)
    assert state.refuse(PRODUCE, 5000) is None


@pytest.mark.parametrize(
    ("user", "longest_ms", "expected_ms"),
    [(b"alice", 3000, 3000), (b"alice:1002000", 3000, 2000), (b"alice:1004000", 3000, 3000),
     (b"alice:1002000", 0, 2000), (b"alice:999000", 0, 1)],
)  # fmt: skip
def test_a_session_ends_with_the_credential_or_the_longest_session(
    user: bytes, longest_ms: int, expected_ms: int
) -> None:
    state = Authentication(Listener(longest_ms))
    state.handshake("PLAIN", 1, at(0))
    assert state.authenticate(user, at(0)).session_lifetime_ms == expected_ms
    assert not state.is_unrestricted
    assert state.refuse(PRODUCE, expected_ms) is not None
    assert state.refuse(HANDSHAKE, expected_ms) is None
    assert state.refuse(PRODUCE, expected_ms - 1) is None


def test_re_authentication_extends_the_session() -> None:
    state = authenticated(2000)
    assert state.handshake("PLAIN", 1, at(1500)).error is ErrorCode.NONE
    assert state.refuse(PRODUCE, 1500) is not None  # in the middle of the exchange
    assert state.authenticate(b"alice", at(1500)).session_lifetime_ms == 2000
    assert state.refuse(PRODUCE, 3000) is None
    too_soon = state.handshake("PLAIN", 1, at(2400))
    assert (too_soon.error, too_soon.failure) == (ErrorCode.ILLEGAL_SASL_STATE, None)
    assert state.handshake("PLAIN", 1, at(4000)).error is ErrorCode.NONE  # after the end of the session


def test_re_authentication_needs_the_same_principal_and_mechanism() -> None:
    state = authenticated(2000)
    state.handshake("PLAIN", 1, at(1500))
    step = state.authenticate(b"bob", at(1500))
    assert step.error is ErrorCode.SASL_AUTHENTICATION_FAILED
    assert step.message == "Cannot change principals during re-authentication from User.alice: User.bob"
    state = authenticated(2000)
    assert state.handshake("SCRAM-SHA-256", 1, at(1500)).error is ErrorCode.NONE
    assert state.authenticate(b"alice", at(1500)).error is ErrorCode.SASL_AUTHENTICATION_FAILED


actions = st.one_of(
    st.tuples(st.just("versions"), st.none()),
    st.tuples(st.just("handshake"), st.sampled_from(["PLAIN", "SCRAM-SHA-256", "GSSAPI"])),
    st.tuples(st.just("token"), st.sampled_from([b"bad", b"more", b"alice", b"bob", b"alice:1000500"])),
    st.tuples(st.just("other"), st.none()),
)


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(actions, max_size=12), st.integers(0, 2).map(lambda seconds: seconds * 1000), st.integers(0, 1))
def test_other_requests_are_accepted_only_after_a_success_and_with_one_principal(
    sent: list[tuple[str, object]], longest_ms: int, version: int
) -> None:
    state = Authentication(Listener(longest_ms))
    has_succeeded, principal, now = False, None, 0
    for action, argument in sent:
        now += 400
        if action == "other":
            if state.refuse(PRODUCE, now) is None:
                assert has_succeeded
            continue
        if state.expects_raw_token != (action == "token" and state.expects_raw_token):
            break  # the connection reads everything as a token
        key = {"versions": VERSIONS, "handshake": HANDSHAKE, "token": AUTHENTICATE}[action]
        if not state.expects_raw_token and state.refuse(key, now) is not None:
            break  # the connection is closed
        if action == "versions":
            state.ask_for_versions()
        elif action == "handshake":
            failure = state.handshake(str(argument), version, at(now)).failure
            if failure is not None:
                break
        else:
            assert isinstance(argument, bytes)
            step = state.authenticate(argument, at(now))
            if step.failure is not None:
                break
            has_succeeded = has_succeeded or state.principal is not None
        assert principal is None or state.principal == principal
        principal = state.principal
