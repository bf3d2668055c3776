"""Expressions over users, groups and roles that say who may do something: `u:ann | (g:plant & !r:guest)`. Pure.

`u:`, `g:` and `r:` name a user, a group and a role. `!` binds closer than `&`, and `&` closer than `|`. `p` alone
stands for everybody, the empty expression for nobody. The user `ann` is the principal `User:ann`. A name with spaces or
operators stands in quotes, `u:"CN=ann, OU=plant"`, in which `\\` stands before a quote and before itself.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator
    from collections.abc import Set as AbstractSet

MAX_EXPRESSION_BYTES = 4 * 1024
EVERYBODY = "p"
_CACHED_EXPRESSIONS = 256  # each up to 100 KB
_LONGEST_SHOWN = 30
_A_NAME = "u:, g: or r: with a name"

_TOKEN = re.compile(r"""\s*(?:([&|!()])|([ugr]):(?:([^\s&|!()"]+)|"((?:[^"\\]|\\["\\])+)"))""")
_PLAIN_NAME = re.compile(r'[^\s&|!()"]+')
_PRECEDENCE = {"|": 1, "&": 2, "!": 3}


class ExpressionError(ValueError):
    """The text is no expression; the message says what was expected where."""


class Identity(NamedTuple):
    """Who asks: the name of a user, and the groups and roles that it has."""

    user: str
    groups: AbstractSet[str] = frozenset()
    roles: AbstractSet[str] = frozenset()


class Name(NamedTuple):
    kind: str  # u, g or r
    name: str


class Expression(NamedTuple):
    """`steps` are names and operators, each operator behind what it joins: a deep expression needs no recursion."""

    steps: tuple[Name | str, ...]
    is_everybody: bool = False

    def allows(self, identity: Identity) -> bool:
        if self.is_everybody:
            return True
        values: list[bool] = []
        for step in self.steps:
            if isinstance(step, Name):
                values.append(_has(identity, step))
            elif step == "!":
                values.append(not values.pop())
            else:
                right, left = values.pop(), values.pop()
                values.append((left and right) if step == "&" else (left or right))
        return bool(values) and values[0]


def _has(identity: Identity, wanted: Name) -> bool:
    kind, name = wanted
    if kind == "u":
        return name == identity.user
    return name in (identity.groups if kind == "g" else identity.roles)


@lru_cache(_CACHED_EXPRESSIONS)
def parse_expression(text: str) -> Expression:
    if len(text.encode()) > MAX_EXPRESSION_BYTES:
        raise ExpressionError(f"an expression has at most {MAX_EXPRESSION_BYTES // 1024} KiB")
    stripped = text.strip()
    if stripped in ("", EVERYBODY):
        return Expression((), is_everybody=stripped == EVERYBODY)
    parser = _Parser(text)
    for position, token in _tokens(text):
        parser.take(position, token)
    return parser.finish()


class _Parser:
    """Takes the tokens of one expression, and keeps operators until their right sides are complete."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._steps: list[Name | str] = []
        self._waiting: list[str] = []
        self._expects_name = True

    def take(self, position: int, token: Name | str) -> None:
        begins_name = isinstance(token, Name) or token in "!("
        if begins_name is not self._expects_name:
            raise _expected(_A_NAME if self._expects_name else "& or |", self._text, position)
        if isinstance(token, Name):
            self._steps.append(token)
            self._expects_name = False
        elif token == ")":
            self._end_above(0)
            if not self._waiting:
                raise ExpressionError(f"the ) at character {position + 1} has no (")
            self._waiting.pop()
        else:
            if not begins_name:
                self._end_above(_PRECEDENCE[token] - 1)
                self._expects_name = True
            self._waiting.append(token)

    def finish(self) -> Expression:
        if self._expects_name:
            raise _expected(_A_NAME, self._text, len(self._text))
        self._end_above(0)
        if self._waiting:
            raise _expected(")", self._text, len(self._text))
        return Expression(tuple(self._steps))

    def _end_above(self, precedence: int) -> None:
        """The operators back to the last parenthesis that bind closer than this are complete."""
        while self._waiting and self._waiting[-1] != "(" and _PRECEDENCE[self._waiting[-1]] > precedence:
            self._steps.append(self._waiting.pop())


def _tokens(text: str) -> Iterator[tuple[int, Name | str]]:
    position, end = 0, len(text.rstrip())
    while position < end:
        match = _TOKEN.match(text, position)
        if match is None:
            if text[position:].split(maxsplit=1)[0] == EVERYBODY:
                raise ExpressionError("p stands for everybody and cannot be combined with others")
            raise _expected(f"{_A_NAME}, or one of & | ! ( )", text, position)
        operator, kind, name, quoted = match.groups()
        text_of_name = name or re.sub(r"\\(.)", r"\1", quoted or "")
        yield match.start(1 if operator else 2), operator or Name(kind, text_of_name)
        position = match.end()


def _expected(what: str, text: str, position: int) -> ExpressionError:
    rest = text[position:].strip()
    shown = rest if len(rest) <= _LONGEST_SHOWN else rest[:_LONGEST_SHOWN] + "…"
    return ExpressionError(f"expected {what} at character {position + 1}, " + (f"not '{shown}'" if rest else "the end"))


def expression_of_user(name: str) -> str:
    """The expression that allows this user alone."""
    if _PLAIN_NAME.fullmatch(name):
        return f"u:{name}"
    return 'u:"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'
