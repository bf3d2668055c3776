"""What a topic may be called, and what Kafka says when it may not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.metadata.topic_names import collision_key, illegal_name_reason, is_internal

CHARACTERS = "contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"


@pytest.mark.parametrize("name", ["a", "A-1_b.c", "...", "_", "-", "a" * 249])
def test_legal_names(name: str) -> None:
    assert illegal_name_reason(name) is None


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "the empty string is not allowed"),
        (".", "'.' is not allowed"),
        ("..", "'..' is not allowed"),
        ("a" * 250, f"the length of '{'a' * 250}' is longer than the max allowed length 249"),
        ("a/b", f"'a/b' {CHARACTERS}"),
        ("../etc", f"'../etc' {CHARACTERS}"),
        ("a\0b", f"'a\0b' {CHARACTERS}"),
        ("a\n", f"'a\n' {CHARACTERS}"),
        ("é", f"'é' {CHARACTERS}"),
    ],
)
def test_illegal_names(name: str, reason: str) -> None:
    assert illegal_name_reason(name) == f"Topic name is invalid: {reason}"


@given(st.text())
def test_no_legal_name_leaves_its_directory(name: str) -> None:
    if illegal_name_reason(name) is None:
        assert "/" not in name
        assert "\0" not in name
        assert name not in ("", ".", "..")


def test_names_that_differ_in_dots_and_underscores_collide() -> None:
    assert collision_key("a.b_c") == collision_key("a_b.c") == "a_b_c"
    assert collision_key("a-b") is None


def test_internal_topics() -> None:
    assert is_internal("__consumer_offsets")
    assert is_internal("__transaction_state")
    assert not is_internal("__mine")
