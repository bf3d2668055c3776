"""Cuts a query into blocks of plain SELECTs: each query of WITH and FROM is one, and each has the parts of UNION ALL.

    with p as (select * from payments) select * from p join (select k from s union all select k from t) q using (k)

becomes the blocks `step__p`, `step__q` of two parts, and `step`. Text keeps its positions: a query in FROM is replaced
by a quoted name of equal length, parentheses around a SELECT by blanks. A block without streams is left as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.conventions.dataclass import dataclass
from odradek.pipelines.sql.text import (
    Span,
    SqlError,
    Token,
    closing,
    cut,
    outside_brackets,
    parse_any,
    tables_of,
    tokens_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

SET_OPERATIONS = {
    "UNION": "write UNION ALL, and `deduplicate` with all columns as its key behind it",
    "INTERSECT": "write a `join` with `stream`, `on` and `within`, and `deduplicate` behind it",
    "EXCEPT": "write a `join` with `stream`, `on`, `within` and `how: left`, and behind it WHERE … IS NULL",
}
AFTER_FROM = frozenset(
    ("WHERE", "GROUP_BY", "HAVING", "ORDER_BY", "SORT_BY", "CLUSTER_BY", "DISTRIBUTE_BY", "LIMIT", "QUALIFY", "WINDOW")
)
QUERIES = frozenset(("SELECT", "WITH", "FROM", "VALUES", "TABLE"))
BEFORE_NAMES = frozenset(("ALIAS", "COMMA", "DOT", "SELECT"))  # tokens behind which UNION or MINUS is a column


class Unreadable(SqlError):
    """A clause that combines queries in a way that streams do not have; `hint` says what to write instead."""


@dataclass(frozen=True, slots=True)
class Part:
    """One SELECT, its offset in the text of the step, and the hidden tables that its names stand for."""

    text: str
    start: int
    renamed: Mapping[str, str]  # name in lower case -> hidden table


@dataclass(frozen=True, slots=True)
class Block:
    """The table that a query makes: the step or a hidden table. If it is static, it has one part, of any SQL."""

    name: str
    parts: tuple[Part, ...]
    is_static: bool = False


def blocks_of(step: str, text: str, is_stream: Callable[[str], bool] = lambda _: True) -> tuple[Block, ...]:
    """The blocks of a query, each behind those that it reads; the last one has the name of the step.

    Raises `SqlError` for text that cannot be read, and `Unreadable` for UNION without ALL and the like over streams.
    """
    found = _Blocks(step, text, is_stream)
    found.add(step, tokens_of(text), {})
    return tuple(found.blocks)


class _Blocks:
    def __init__(self, step: str, text: str, is_stream: Callable[[str], bool]) -> None:
        self.blocks: list[Block] = []
        self._step = step
        self._text = text
        self._is_stream = is_stream

    def add(self, name: str, tokens: Sequence[Token], hidden: Mapping[str, str]) -> None:
        """Adds the blocks of a query; `hidden` has the tables that the names of WITH around it stand for."""
        while tokens and tokens[-1].kind == "SEMICOLON":
            tokens = tokens[:-1]
        is_static = self._is_static(tokens, hidden)
        parts = (self._part(tokens, {}, hidden),) if is_static else self._parts(tokens, hidden)
        self.blocks.append(Block(name, tuple(parts), is_static))

    def _is_static(self, tokens: Sequence[Token], hidden: Mapping[str, str]) -> bool:
        if tokens and tokens[0].kind == "VALUES":
            return True
        start = tokens[0].start if tokens else 0
        try:
            query = parse_any(self._text[start : tokens[-1].end] if tokens else "")
        except SqlError as error:
            raise SqlError(error.message, error.offset + start, error.hint) from error
        made = {each.name: each.is_static for each in self.blocks}
        tables = [hidden.get(name.lower(), name) for name in tables_of(query)]
        return not any(not made[name] if name in made else self._is_stream(name) for name in tables)

    def _parts(self, tokens: Sequence[Token], hidden: Mapping[str, str]) -> list[Part]:
        """The parts of UNION ALL, whatever parentheses are around them."""
        if tokens and tokens[0].kind == "L_PAREN" and closing(tokens, 0) == len(tokens) - 1:
            return self._parts(tokens[1:-1], hidden)
        if tokens and tokens[0].kind == "WITH":
            tokens, hidden = self._without_with(tokens, hidden)
            return self._parts(tokens, hidden)
        unions = [index for index in outside_brackets(tokens) if self._is_union(tokens, index)]
        if unions:
            front, *others = cut(tokens, unions)  # the others begin with ALL
            return [part for each in (front, *(each[1:] for each in others)) for part in self._parts(each, hidden)]
        if not tokens or tokens[0].kind != "SELECT":
            raise SqlError("expected a SELECT", tokens[0].start if tokens else 0, "write SELECT … FROM …")
        own = dict(hidden)
        stand_ins = {}
        for first, last in _queries_in_from(tokens):
            name = self._unused_name(_alias_behind(tokens, last) or str(len(self.blocks) + 1))
            self.add(name, tokens[first + 1 : last], hidden)
            span = (tokens[first].start, tokens[last].end)
            stand_in = f"q{span[0]}".ljust(span[1] - span[0] - 2, "_")
            own[stand_in] = name
            stand_ins[span] = f"`{stand_in}`"
        return [self._part(tokens, stand_ins, own)]

    def _without_with(
        self, tokens: Sequence[Token], hidden: Mapping[str, str]
    ) -> tuple[Sequence[Token], Mapping[str, str]]:
        """Adds the queries of WITH; returns the query behind it, and the names that it can use."""
        own = dict(hidden)
        index = 0
        while index == 0 or tokens[index].kind == "COMMA":
            name, behind = tokens[index + 1], tokens[index + 2]
            if name.kind == "RECURSIVE":
                raise Unreadable("WITH RECURSIVE", name.start, "streams have no recursion")
            if behind.kind == "L_PAREN" and tokens[index + 3].kind not in QUERIES | {"L_PAREN"}:
                raise Unreadable(f"WITH {name.text}(…)", name.start, "name the columns in its SELECT: … AS a")
            opening = index + 3 if behind.kind == "ALIAS" else index + 2
            end = closing(tokens, opening)
            table = self._unused_name(name.text)
            self.add(table, tokens[opening + 1 : end], own)
            own[name.text.lower()] = table
            index = end + 1
        return tokens[index:], own

    def _is_union(self, tokens: Sequence[Token], index: int) -> bool:
        token = tokens[index]
        behind = [each.kind for each in (*tokens[index + 1 : index + 3], token)]
        is_of_star = token.kind == "EXCEPT" and behind[:1] == ["L_PAREN"] and behind[1] not in QUERIES
        if token.kind == "PIPE_GT":
            raise Unreadable("|>", token.start, "write SELECT … FROM … WHERE …")
        if token.kind == "UNION" and behind[:1] == ["ALL"]:
            return True
        is_name = tokens[index - 1].kind in BEFORE_NAMES or behind[0] not in QUERIES | {"L_PAREN", "ALL", "DISTINCT"}
        if token.kind in SET_OPERATIONS and not is_of_star and not is_name:
            raise Unreadable(token.text.upper(), token.start, SET_OPERATIONS[token.kind])
        return False

    def _part(self, tokens: Sequence[Token], replaced: Mapping[Span, str], renamed: Mapping[str, str]) -> Part:
        start, end = tokens[0].start, tokens[-1].end
        text = self._text[start:end]
        for span, new in replaced.items():
            text = text[: span[0] - start] + new + text[span[1] - start :]
        return Part(text, start, renamed)

    def _unused_name(self, suffix: str) -> str:
        taken = {each.name.lower() for each in self.blocks}
        name = f"{self._step}__{suffix}"
        return self._unused_name(suffix + "_") if name.lower() in taken else name


def _alias_behind(tokens: Sequence[Token], last: int) -> str:
    """The alias of a query in FROM, of which this is the last token."""
    behind = [each for each in tokens[last + 1 : last + 3] if each.kind != "ALIAS"]
    return behind[0].text if behind and behind[0].kind == "VAR" else ""


def _queries_in_from(tokens: Sequence[Token]) -> list[tuple[int, int]]:
    """The indexes of the parentheses around each query in FROM."""
    found = []
    is_in_from = takes_table = False
    for index in outside_brackets(tokens):
        kind = tokens[index].kind
        if takes_table and kind == "L_PAREN":
            inner = next(each for each in range(index, len(tokens)) if tokens[each].kind != "L_PAREN")
            if tokens[inner].kind in QUERIES:
                found.append((index, closing(tokens, index)))
        starts_from = kind == "FROM" and tokens[index - 1].kind != "DISTINCT"  # IS DISTINCT FROM
        is_in_from = (is_in_from or starts_from) and kind not in AFTER_FROM
        takes_table = starts_from or kind == "JOIN" or (is_in_from and kind == "COMMA")
    return found
