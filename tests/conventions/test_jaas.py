"""Lines of sasl.jaas.config: what Kafka accepts, errors that show no password, and random text."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.conventions.client_properties import PLAIN_MODULE, JaasError, parse_jaas


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (f"{PLAIN_MODULE} required user_alice=\"a b\" user_bob='c;d';", {"user_alice": "a b", "user_bob": "c;d"}),
        (f"{PLAIN_MODULE} Required;", {}),
        (f'{PLAIN_MODULE} required\n  a="b" // note\n /* c="d" */ e = "f" ;', {"a": "b", "e": "f"}),
        (f'{PLAIN_MODULE} required a="q\\"uote\\\\ \\n";', {"a": 'q"uote\\ \n'}),
        (f"{PLAIN_MODULE} required a=plain-word_1;", {"a": "plain-word_1"}),
        (f'{PLAIN_MODULE} required a="";', {"a": ""}),
    ],
)
def test_a_line_has_a_module_and_options(text: str, options: dict[str, str]) -> None:
    module = parse_jaas(text)
    assert (module.name, module.options) == (PLAIN_MODULE, options)


def test_users_are_options_with_a_prefix_and_their_passwords_are_not_shown() -> None:
    module = parse_jaas(f'{PLAIN_MODULE} required username="x" user_alice="secret";')
    assert module.users == {"alice": "secret"}
    assert "secret" not in repr(module)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        ("Module", "required"),
        ('Module a="secret";', "required"),
        ('Module required a="secret"', "semicolon"),
        ("Module required secret;", "no value"),
        ("Module required secret=;", "no value"),
        ('Module required a="secret', "not closed"),
        ('Module required a="secret"; Other required;', "more than one"),
    ],
)
def test_errors_say_what_is_wrong_without_the_values(text: str, reason: str) -> None:
    with pytest.raises(JaasError, match=reason) as caught:
        parse_jaas(text)
    assert "secret" not in str(caught.value)


@settings(max_examples=200, deadline=None)
@given(st.text("ab=;\"'\\/* \n", max_size=30))
def test_random_text_is_parsed_or_refused(text: str) -> None:
    with contextlib.suppress(JaasError):
        parse_jaas("Module required " + text)
