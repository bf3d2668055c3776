"""Reads the tokens of a SQL text one by one, and collects the text that has been read."""

from __future__ import annotations

from dataclasses import dataclass

from odradek.pipelines.planning.sql_tokens import Kind, Token, tokenize
from odradek.pipelines.spark.one_pass.row_columns import NotLiftable

# Words that are never taken for column names or aliases; as such they must be in backquotes.
GRAMMAR_WORDS = """select from where as and or not is null true false unknown in between like ilike rlike regexp escape
case when then else end distinct all any some exists div on using join with union intersect except minus"""
GRAMMAR = frozenset(GRAMMAR_WORDS.split())
# Words behind an expression or a table that start another clause.
CLAUSE_WORDS = """lateral view group order having limit offset over filter within collate outer window qualify sort
cluster distribute tablesample pivot unpivot cross natural inner left right full semi anti values table for"""
CLAUSES = GRAMMAR | frozenset(CLAUSE_WORDS.split())


@dataclass(frozen=True, slots=True)
class ColumnName:
    """A column name in an expression, with the names of nested fields, as the user wrote them."""

    parts: tuple[str, ...]


class TokenReader:
    """Reads the tokens of a text from left to right, and collects the pieces of the current expression."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = tokenize(text)
        self._next = 0
        self.pieces: list[str | ColumnName] = []

    def peek(self, ahead: int = 0) -> Token | None:
        index = self._next + ahead
        return self._tokens[index] if index < len(self._tokens) else None

    def at_word(self, *words: str, ahead: int = 0) -> bool:
        token = self.peek(ahead)
        return token is not None and token.is_word(*words)

    def at_symbol(self, *symbols: str, ahead: int = 0) -> bool:
        token = self.peek(ahead)
        return token is not None and token.is_symbol(*symbols)

    def at_kind(self, *kinds: Kind, ahead: int = 0) -> bool:
        token = self.peek(ahead)
        return token is not None and token.kind in kinds

    def skip(self) -> Token:
        """Reads a token that is not part of an expression."""
        token = self.peek()
        if token is None or token.kind is Kind.UNKNOWN:
            raise self.refusal()
        self._next += 1
        return token

    def take(self) -> Token:
        """Reads a token of an expression, with one space in place of the gap before it."""
        gap = self.gap()
        token = self.skip()
        self.pieces += [gap, token.text] if gap else [token.text]
        return token

    def take_word(self, *words: str) -> Token:
        if not self.at_word(*words):
            raise self.refusal()
        return self.take()

    def take_symbol(self, *symbols: str) -> Token:
        if not self.at_symbol(*symbols):
            raise self.refusal()
        return self.take()

    def expect_end(self) -> None:
        if self.peek() is not None:
            raise self.refusal()

    def refusal(self) -> NotLiftable:
        token = self.peek()
        return NotLiftable(self._text if token is None else f"{token.text} in {self._text}")

    def gap(self) -> str:
        token = self.peek()
        before = self._tokens[self._next - 1].end if self._next else 0
        return " " if token is not None and token.start > before else ""

    def name(self) -> str:
        """Reads an identifier that is not part of an expression, such as an alias."""
        if not self.at_name():
            raise self.refusal()
        return self.skip().name

    def at_name(self, ahead: int = 0) -> bool:
        """Whether an identifier follows that cannot be mistaken for a keyword."""
        token = self.peek(ahead)
        return self.at_field(ahead) and token is not None and not token.is_word(*GRAMMAR)

    def at_field(self, ahead: int = 0) -> bool:
        """Whether an identifier follows; letters beyond ASCII are left to Spark's own rules of case."""
        token = self.peek(ahead)
        return token is not None and token.is_name and token.text.isascii()

    def at_alias(self) -> bool:
        """Whether an identifier follows that can be an alias without AS."""
        return self.at_name() and not self.at_word(*CLAUSES)
