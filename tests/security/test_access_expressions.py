"""Expressions that say who may do something."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.security.access_expressions import (
    MAX_EXPRESSION_BYTES,
    ExpressionError,
    Identity,
    expression_of_user,
    parse_expression,
)

ANN = Identity("ann", frozenset({"plant"}), frozenset({"guest"}))
BOB = Identity("bob")

# Whether ann and whether bob is allowed.
TABLE = [
    ("", False, False),
    ("p", True, True),
    (" p ", True, True),
    ("u:ann", True, False),
    ("g:plant", True, False),
    ("r:guest", True, False),
    ("g:guest", False, False),
    ("!u:ann", False, True),
    ("!!u:ann", True, False),
    ("u:ann|u:bob", True, True),
    ("u:ann & u:bob", False, False),
    ("u:bob|g:plant&!r:guest", False, True),
    ("(u:bob|g:plant)&r:guest", True, False),
    ("!u:x&!u:y|u:z", True, True),
    ("!(u:ann|u:z)", False, True),
    ("!u:ann|u:ann", True, True),
    ("u:bob&u:ann|u:ann", True, False),
    ("u:ann|u:bob&u:nobody", True, False),
    ("((((u:ann))))", True, False),
    ('u:"ann"|u:"CN=x, O=a & b"', True, False),
]


@pytest.mark.parametrize(("text", "ann", "bob"), TABLE)
def test_who_is_allowed(text: str, ann: bool, bob: bool) -> None:
    expression = parse_expression(text)
    assert (expression.allows(ANN), expression.allows(BOB)) == (ann, bob)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ann", "expected u:, g: or r: with a name, or one of & | ! ( ) at character 1, not 'ann'"),
        ("u:", "at character 1, not 'u:'"),
        ("u:a u:b", "expected & or | at character 5, not 'u:b'"),
        ("(u:a", "expected ) at character 5, the end"),
        ("u:a)", "the ) at character 4 has no ("),
        ("u:a|", "expected u:, g: or r: with a name at character 5, the end"),
        ("&u:a", "at character 1, not '&u:a'"),
        ("u:a & p", "p stands for everybody and cannot be combined"),
        ("u:a!", "expected & or | at character 4"),
        ("()", "expected u:, g: or r: with a name at character 2"),
        ("u:" + "a" * MAX_EXPRESSION_BYTES, "an expression has at most 4 KiB"),
    ],
)
def test_what_is_no_expression_says_where(text: str, message: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse_expression(text)
    assert message in str(caught.value)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("text", ["!" * 4_000 + "u:ann", "(" * 2_000 + "u:ann" + ")" * 2_000])
def test_depth_takes_no_stack(text: str) -> None:
    assert parse_expression(text).allows(ANN)


@given(st.text(min_size=1, max_size=20))
def test_the_expression_of_any_user_allows_this_one_alone(user: str) -> None:
    expression = parse_expression(expression_of_user(user))
    assert expression.allows(Identity(user))
    assert not expression.allows(Identity(user + "x"))
    assert not expression.allows(Identity("", frozenset({user}), frozenset({user})))


names = st.sampled_from(["u:ann", "u:bob", "g:plant", "r:guest"])
trees = st.recursive(
    names,
    lambda below: st.tuples(st.just("!"), below) | st.tuples(below, st.sampled_from("&|"), below),
    max_leaves=12,
)


def written(tree: object) -> str:
    if isinstance(tree, str):
        return tree
    assert isinstance(tree, tuple)
    if len(tree) == 2:
        return f"!({written(tree[1])})"
    return f"({written(tree[0])}){tree[1]}({written(tree[2])})"


def value(tree: object) -> bool:
    if isinstance(tree, str):
        return tree != "u:bob"
    assert isinstance(tree, tuple)
    if len(tree) == 2:
        return not value(tree[1])
    left, right = value(tree[0]), value(tree[2])
    return (left and right) if tree[1] == "&" else (left or right)


@given(trees)
def test_an_expression_means_what_its_parentheses_say(tree: object) -> None:
    assert parse_expression(written(tree)).allows(ANN) is value(tree)


@given(st.lists(st.lists(st.tuples(st.booleans(), names), min_size=1, max_size=3), min_size=1, max_size=3))
def test_not_binds_closest_then_and_then_or(alternatives: list[list[tuple[bool, str]]]) -> None:
    text = "|".join("&".join("!" * negated + name for negated, name in terms) for terms in alternatives)
    expected = any(all(value(name) is not negated for negated, name in terms) for terms in alternatives)
    assert parse_expression(text).allows(ANN) is expected
