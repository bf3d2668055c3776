"""Tokens of Spark SQL with their positions, by the rules of Spark's own lexer. Does not import Spark.

Text is rewritten by replacing the spans of tokens, so that everything else reaches Spark as the user wrote it. Comments
are not tokens. A character that starts no known token is a token of the kind `UNKNOWN`.
"""

from __future__ import annotations

import re
from enum import Enum, auto
from typing import TYPE_CHECKING

from odradek.conventions.dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence


class Kind(Enum):
    WORD = auto()  # a keyword or an identifier
    QUOTED = auto()  # an identifier in backquotes
    STRING = auto()
    NUMBER = auto()
    SYMBOL = auto()
    UNKNOWN = auto()


@dataclass(frozen=True, slots=True)
class Token:
    kind: Kind
    text: str
    start: int
    end: int

    def is_word(self, *words: str) -> bool:
        """Whether this is one of these keywords, given in lower case."""
        return self.kind is Kind.WORD and self.text.lower() in words

    def is_symbol(self, *symbols: str) -> bool:
        return self.kind is Kind.SYMBOL and self.text in symbols

    @property
    def is_name(self) -> bool:
        return self.kind in {Kind.WORD, Kind.QUOTED}

    @property
    def name(self) -> str:
        """The identifier that the token stands for."""
        return self.text[1:-1].replace("``", "`") if self.kind is Kind.QUOTED else self.text


# Nested comments, hints, and line comments that a backslash continues are UNKNOWN.
PATTERN = re.compile(
    r"""
      (?P<gap>\s+ | --[^\n\\]*(?=\n|\Z) | /\*(?!\+)(?:(?!/\*|\*/).)*\*/)
    | (?P<string>[rR]'[^']*'(?!') | [rR]"[^"]*"(?!") | '(?:[^'\\]|\\.|'')*' | "(?:[^"\\]|\\.|"")*")
    | (?P<quoted>`(?:[^`]|``)*`)
    | (?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?:BD|bd|Bd|bD|[LlSsYyDdFf])?(?![\w$]))
    | (?P<word>[^\W\d]\w*(?!\$))
    | (?P<symbol><=>|>>>|<=|>=|<>|!=|==|\|\||::|->|=>|<<|>>|\|>|/\*|--|[-+*/%&|^~<>=!()\[\],.:;])
    """,
    re.VERBOSE | re.DOTALL,
)
KINDS = {
    "string": Kind.STRING,
    "quoted": Kind.QUOTED,
    "number": Kind.NUMBER,
    "word": Kind.WORD,
    "symbol": Kind.SYMBOL,
}
NOT_TOKENS = frozenset({"/*", "--", "|>"})


def tokenize(text: str) -> list[Token]:
    """The tokens of a text; the rest of the text after an unknown character is not read."""
    tokens: list[Token] = []
    position = 0
    while position < len(text):
        found = PATTERN.match(text, position)
        group = None if found is None else found.lastgroup
        if found is None or (group == "symbol" and found[0] in NOT_TOKENS):
            tokens.append(Token(Kind.UNKNOWN, text[position:], position, len(text)))
            break
        if group != "gap":
            tokens.append(Token(KINDS[str(group)], found[0], found.start(), found.end()))
        position = found.end()
    return tokens


def is_star(tokens: Sequence[Token], index: int) -> bool:
    """Whether this token is a `*` that stands for columns, and not a multiplication."""
    if not tokens[index].is_symbol("*"):
        return False
    if index == 0:
        return True
    before = tokens[index - 1]
    return before.is_symbol("(", ",", ".") or before.is_word("distinct", "all", "select")


def counts_rows(tokens: Sequence[Token], index: int) -> bool:
    """Whether this is the `*` of `count(*)`."""
    return index >= 2 and tokens[index - 1].is_symbol("(") and tokens[index - 2].is_word("count")


def is_plain_star(tokens: Sequence[Token], index: int) -> bool:
    """Whether this `*` stands for all columns: no qualifier before it, no EXCEPT behind it."""
    is_ended = index + 1 == len(tokens) or tokens[index + 1].is_symbol(")", ",")
    return is_ended and not (index and tokens[index - 1].is_symbol("."))
