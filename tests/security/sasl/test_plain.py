"""PLAIN: names and passwords, Kafka's messages for failures, and bytes that must not authenticate."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.security.sasl.outcome import Authenticated, Failed
from odradek.security.sasl.plain import PlainServer
from tests.example_counts import examples

USERS = {"alice": "secret", "bø": "pässword"}
OTHER_IDENTITY = "Authentication failed: Client requested an authorization id that is different from username"
INVALID = "Authentication failed: Invalid username or password"


@pytest.mark.parametrize("message", ["\0alice\0secret", "alice\0alice\0secret", "\0bø\0pässword"])
def test_the_right_password_authenticates(message: str) -> None:
    outcome = PlainServer(USERS).evaluate(message.encode())
    assert isinstance(outcome, Authenticated)
    assert outcome.user == message.split("\0")[1]


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ("\0alice\0wrong", INVALID),
        ("\0nobody\0secret", INVALID),
        ("\0alice\0", "Authentication failed: password not specified"),
        ("\0\0secret", "Authentication failed: username not specified"),
        ("bob\0alice\0secret", OTHER_IDENTITY),
        ("alice\0secret", "Invalid SASL/PLAIN response: expected 3 tokens, got 2"),
        ("", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
        ("\0alice\0secret\0", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
        ("\0a\0b\0c\0d\0e", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
    ],
)  # fmt: skip
def test_failures_have_the_messages_of_kafka(message: str, text: str) -> None:
    outcome = PlainServer(USERS).evaluate(message.encode())
    assert isinstance(outcome, Failed)
    assert outcome.message == text
    assert "secret" not in outcome.reason


def test_a_long_message_is_refused() -> None:
    assert isinstance(PlainServer(USERS).evaluate(b"\0alice\0secret" + b"x" * 20_000), Failed)


@settings(max_examples=examples(75), deadline=None)
@given(st.one_of(st.binary(max_size=40), st.lists(st.sampled_from(["\0", "alice", "secret"]), max_size=6).map("".join)))
def test_only_the_exact_message_authenticates(message: bytes | str) -> None:
    data = message.encode() if isinstance(message, str) else message
    outcome = PlainServer(USERS).evaluate(data)
    assert isinstance(outcome, Authenticated) is (data in (b"\0alice\0secret", b"alice\0alice\0secret"))
