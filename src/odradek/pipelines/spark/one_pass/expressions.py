"""Recognizes SQL expressions that keep their meaning when their column names are replaced.

The grammar is an allow-list: it finds out which words are column names, and raises `NotLiftable` for whatever it does
not know. Precedence does not matter, because only the spans of column names are replaced, and the rest of the text
reaches Spark unchanged (comments aside).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from odradek.pipelines.planning.sql_tokens import Kind
from odradek.pipelines.spark.hidden_columns import quoted
from odradek.pipelines.spark.one_pass.row_columns import NotLiftable
from odradek.pipelines.spark.one_pass.safe_functions import SAFE_FUNCTIONS
from odradek.pipelines.spark.one_pass.token_reader import ColumnName, TokenReader

INFIX_WORDS = frozenset({"and", "or", "div", "like", "ilike", "rlike", "regexp", "between", "escape"})
INFIX_SYMBOLS = frozenset({*"+-*/%&|^=<>", "||", "==", "<=>", "<=", ">=", "<>", "!=", "<<", ">>", ">>>"})
PREFIX_SYMBOLS = frozenset({"+", "-", "~", "!"})
TYPED_LITERALS = frozenset({"date", "timestamp", "timestamp_ntz", "timestamp_ltz", "time", "x"})
CLOCK_WORDS = ("now", "today", "tomorrow", "yesterday")  # Spark replaces them when it parses a literal
INTERVAL_UNITS = frozenset(
    unit + plural
    for unit in ("year", "month", "week", "day", "hour", "minute", "second", "millisecond", "microsecond")
    for plural in ("", "s")
)
# With three arguments the first one is a unit (`dateadd(day, 1, at)`) and not a column.
UNIT_FUNCTIONS = frozenset({"date_add", "dateadd", "date_diff", "datediff", "timestampadd", "timestampdiff"})
TYPE_SYMBOLS = frozenset({"<", ">", ">>", ">>>", "(", ")", ",", ":"})

Resolve = Callable[[tuple[str, ...]], tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Expression:
    """The text of an expression, split at its column names."""

    pieces: tuple[str | ColumnName, ...]
    variables: frozenset[str] = frozenset()  # of lambdas, in lower case

    @property
    def column(self) -> ColumnName | None:
        """The column, if the expression is nothing else."""
        found = [each for each in self.pieces if isinstance(each, ColumnName) or each.strip()]
        return found[0] if len(found) == 1 and isinstance(found[0], ColumnName) else None

    @property
    def columns(self) -> list[ColumnName]:
        return [each for each in self.pieces if isinstance(each, ColumnName)]

    def sql(self, resolve: Resolve) -> str:
        """The text with every column name replaced by its path."""
        return "".join(each if isinstance(each, str) else self._replaced(each, resolve) for each in self.pieces).strip()

    def _replaced(self, column: ColumnName, resolve: Resolve) -> str:
        path = resolve(column.parts)
        if path[0].lower() in self.variables:
            raise NotLiftable(path[0])  # Spark would resolve the column as the lambda's variable
        return ".".join(map(quoted, path))


def parse_expression(text: str) -> Expression:
    """Reads a text that is one expression."""
    reader = ExpressionReader(text)
    found = reader.whole_expression()
    reader.expect_end()
    return found


class ExpressionReader(TokenReader):
    """Reads expressions, one method for each rule of the grammar."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._scopes: list[frozenset[str]] = []  # variables of the lambdas around the current token
        self._variables: set[str] = set()

    def whole_expression(self) -> Expression:
        self.pieces, self._variables = [], set()
        self.expression()
        return Expression(tuple(self.pieces), frozenset(self._variables))

    def expression(self) -> None:
        self._operand()
        while True:
            if self.at_word(*INFIX_WORDS) or self.at_symbol(*INFIX_SYMBOLS):
                self.take()
            elif self.at_word("not") and self.at_word("like", "ilike", "rlike", "regexp", "between", ahead=1):
                self.take()
                self.take()
            elif self.at_word("in") or (self.at_word("not") and self.at_word("in", ahead=1)):
                self._in_list()
                continue
            elif self.at_word("is"):
                if not self._is_predicate():
                    continue
            else:
                return
            self._operand()

    def _in_list(self) -> None:
        if self.at_word("not"):
            self.take()
        self.take_word("in")
        self.take_symbol("(")
        self._expressions()
        self.take_symbol(")")

    def _is_predicate(self) -> bool:
        """Reads IS …; returns whether an operand follows."""
        self.take_word("is")
        if self.at_word("not"):
            self.take()
        if self.at_word("distinct"):
            self.take()
            self.take_word("from")
            return True
        self.take_word("null", "true", "false", "unknown")
        return False

    def _operand(self) -> None:
        while self.at_word("not") or self.at_symbol(*PREFIX_SYMBOLS):
            self.take()
        self._primary()
        while True:
            if self.at_symbol("["):
                self.take()
                self.expression()
                self.take_symbol("]")
            elif self.at_symbol(".") and self.at_field(ahead=1):
                self.take()
                self.take()
            elif self.at_symbol("::"):
                self.take()
                self._simple_type()
            else:
                return

    def _primary(self) -> None:
        if self.at_kind(Kind.NUMBER) or self.at_word("null", "true", "false"):
            self.take()
        elif self.at_kind(Kind.STRING):
            while self.at_kind(Kind.STRING):  # Spark concatenates them
                self.take()
        elif self.at_symbol("("):
            self.take()
            self.expression()
            self.take_symbol(")")
        elif self.at_word("case"):
            self._case()
        elif self.at_word("cast", "try_cast") and self.at_symbol("(", ahead=1):
            self._cast()
        elif self.at_word("interval") and self._starts_interval():
            self._interval()
        elif self.at_word(*TYPED_LITERALS) and self.at_kind(Kind.STRING, ahead=1):
            self._typed_literal()
        elif self.at_kind(Kind.WORD) and self.at_symbol("(", ahead=1):
            self._call()
        else:
            self._column()

    def _typed_literal(self) -> None:
        self.take()
        value = self.take().text.lower()
        if any(word in value for word in CLOCK_WORDS):
            raise NotLiftable(value)

    def _case(self) -> None:
        self.take_word("case")
        if not self.at_word("when"):
            self.expression()
        while self.at_word("when"):
            self.take()
            self.expression()
            self.take_word("then")
            self.expression()
        if self.at_word("else"):
            self.take()
            self.expression()
        self.take_word("end")

    def _cast(self) -> None:
        self.take()
        self.take_symbol("(")
        self.expression()
        self.take_word("as")
        depth = 0
        while depth or not self.at_symbol(")"):
            if not (self.at_kind(Kind.WORD, Kind.QUOTED, Kind.NUMBER) or self.at_symbol(*TYPE_SYMBOLS)):
                raise self.refusal()
            depth += self.at_symbol("(") - self.at_symbol(")")
            self.take()
        self.take_symbol(")")

    def _simple_type(self) -> None:
        if not self.at_kind(Kind.WORD):
            raise self.refusal()
        self.take()
        if self.at_symbol("("):
            self.take()
            while self.at_kind(Kind.NUMBER) or self.at_symbol(","):
                self.take()
            self.take_symbol(")")

    def _starts_interval(self) -> bool:
        ahead = 2 if self.at_symbol("+", "-", ahead=1) else 1
        return self.at_kind(Kind.STRING, Kind.NUMBER, ahead=ahead)

    def _interval(self) -> None:
        self.take_word("interval")
        while self.at_kind(Kind.STRING, Kind.NUMBER) or (
            self.at_symbol("+", "-")
            and self.at_kind(Kind.STRING, Kind.NUMBER, ahead=1)
            and self.at_word(*INTERVAL_UNITS, ahead=2)
        ):
            if self.at_symbol("+", "-"):
                self.take()
            self.take()
            if not self.at_word(*INTERVAL_UNITS):
                return
            self.take()
            if self.at_word("to") and self.at_word(*INTERVAL_UNITS, ahead=1):
                self.take()
                self.take()
                return

    def _call(self) -> None:
        name = self.take().text.lower()
        if name == "extract":
            self._extract()
            return
        if name not in SAFE_FUNCTIONS:
            raise NotLiftable(f"{name}() in {self._text}")
        self.take_symbol("(")
        if self.at_symbol(")"):
            self.take()
            return
        count = self._expressions(self._struct_field if name == "struct" else self._argument)
        if name in UNIT_FUNCTIONS and count != 2:
            raise self.refusal()
        self.take_symbol(")")

    def _extract(self) -> None:
        self.take_symbol("(")
        if not self.at_kind(Kind.WORD):
            raise self.refusal()
        self.take()
        self.take_word("from")
        self.expression()
        self.take_symbol(")")

    def _expressions(self, read: Callable[[], None] | None = None) -> int:
        each = read or self.expression
        each()
        count = 1
        while self.at_symbol(","):
            self.take()
            each()
            count += 1
        return count

    def _struct_field(self) -> None:
        """An argument of `struct`, whose column name is the name of the field."""
        before = len(self.pieces)
        self.expression()
        if self.at_word("as"):
            self.take()
            if not self.at_name():
                raise self.refusal()
            self.take()
            return
        read = [each for each in self.pieces[before:] if isinstance(each, ColumnName) or each.strip()]
        if len(read) == 1 and isinstance(read[0], ColumnName):
            self.pieces.append(f" as {quoted(read[0].parts[-1])}")

    def _argument(self) -> None:
        """An argument of a function: an expression or a lambda."""
        names = self._lambda_names()
        if names is None:
            self.expression()
            return
        variables = frozenset(names)
        self._variables |= variables
        self._scopes.append(variables)
        self.expression()
        self._scopes.pop()

    def _lambda_names(self) -> list[str] | None:
        """Reads `name ->` or `(name, name) ->`; None if no lambda follows."""
        if self.at_name() and self.at_symbol("->", ahead=1):
            names = [self.take().name.lower()]
            self.take()
            return names
        if not self.at_symbol("("):
            return None
        ahead = 1
        while self.at_name(ahead) and self.at_symbol(",", ahead=ahead + 1):
            ahead += 2
        if not (self.at_name(ahead) and self.at_symbol(")", ahead=ahead + 1) and self.at_symbol("->", ahead=ahead + 2)):
            return None
        read = [self.take() for _ in range(ahead + 3)]
        return [token.name.lower() for token in read if token.is_name]

    def _column(self) -> None:
        token = self.peek()
        if token is not None and self.at_name() and any(token.name.lower() in scope for scope in self._scopes):
            self.take()
            return
        gap = self.gap()
        parts = [self.name()]
        while self.at_symbol(".") and self.at_field(ahead=1):
            self.skip()
            parts.append(self.skip().name)
        if self.at_symbol("("):
            raise self.refusal()
        self.pieces += [gap, ColumnName(tuple(parts))]
