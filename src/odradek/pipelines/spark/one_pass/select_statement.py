"""Recognizes a plain SELECT: expressions of one table, at most one LATERAL VIEW, and a WHERE."""

from __future__ import annotations

from dataclasses import dataclass

from odradek.pipelines.spark.one_pass.expressions import Expression, ExpressionReader


@dataclass(frozen=True, slots=True)
class Star:
    """All columns, or those of a table or of a struct."""

    of: str | None = None


@dataclass(frozen=True, slots=True)
class Item:
    """A column of a SELECT."""

    name: str
    expression: Expression


@dataclass(frozen=True, slots=True)
class LateralView:
    """A LATERAL VIEW: its generator, its alias, and the names of its columns."""

    generator: str
    arguments: tuple[Expression, ...]
    alias: str
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SelectStatement:
    items: tuple[Item | Star, ...]
    table: str
    alias: str
    lateral: LateralView | None
    where: Expression | None


def parse_select(text: str) -> SelectStatement:
    """Reads a plain SELECT; raises `NotLiftable` for any other query."""
    return SelectReader(text).statement()


class SelectReader(ExpressionReader):
    def statement(self) -> SelectStatement:
        self._keyword("select")
        items = [self._item()]
        while self.at_symbol(","):
            self.skip()
            items.append(self._item())
        self._keyword("from")
        table = self.name()
        alias = self._alias() or table
        lateral = self._lateral_view() if self.at_word("lateral") else None
        where = None
        if self.at_word("where"):
            self.skip()
            where = self.whole_expression()
        while self.at_symbol(";"):
            self.skip()
        self.expect_end()
        return SelectStatement(tuple(items), table, alias, lateral, where)

    def _keyword(self, word: str) -> None:
        if not self.at_word(word):
            raise self.refusal()
        self.skip()

    def _alias(self) -> str | None:
        if self.at_word("as"):
            self.skip()
            return self.name()
        return self.name() if self.at_alias() else None

    def _item(self) -> Item | Star:
        if self.at_symbol("*"):
            self.skip()
            return Star()
        if self.at_name() and self.at_symbol(".", ahead=1) and self.at_symbol("*", ahead=2):
            name = self.name()
            self.skip()
            self.skip()
            return Star(name)
        expression = self.whole_expression()
        alias = self._alias()
        if alias is not None:
            return Item(alias, expression)
        column = expression.column
        if column is None:
            raise self.refusal()  # Spark names the column after the text of the expression
        return Item(column.parts[-1], expression)

    def _lateral_view(self) -> LateralView:
        self._keyword("lateral")
        self._keyword("view")
        generator = self.name().lower()
        self._symbol("(")
        arguments = [self.whole_expression()]
        while self.at_symbol(","):
            self.skip()
            arguments.append(self.whole_expression())
        self._symbol(")")
        alias = self.name() if self.at_alias() else ""
        names = []
        if self.at_word("as") or self.at_alias():
            if self.at_word("as"):
                self.skip()
            names.append(self.name())
            while self.at_symbol(","):
                self.skip()
                names.append(self.name())
        return LateralView(generator, tuple(arguments), alias, tuple(names))

    def _symbol(self, symbol: str) -> None:
        if not self.at_symbol(symbol):
            raise self.refusal()
        self.skip()
