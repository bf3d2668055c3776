"""Finds columns that are neither grouped nor aggregated, and aggregate functions where Spark allows none."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from odradek.conventions.dataclass import dataclass
from odradek.pipelines.definition.spark_functions import AGGREGATE
from odradek.pipelines.definition.sql_findings import Finding
from odradek.pipelines.definition.sql_text import place_in
from odradek.pipelines.definition.sql_windows import lengths_of
from odradek.pipelines.definition.sql_written import is_star, name_of, start_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlglot import exp

    from odradek.pipelines.definition.spark_functions import Functions
    from odradek.pipelines.definition.sql_scope import Scope

OVER_ONLY, GENERATOR = "window_funcs", "generator_funcs"
WINDOWS = ("window", "session_window")


@functools.cache
def plain_nodes() -> tuple[type[exp.Expr], ...]:
    """Expressions that are made of their parts: a column below them must be grouped as if it stood alone."""
    from sqlglot import exp  # noqa: PLC0415 - parsed already, so imported already

    return (
        exp.Alias, exp.Paren, exp.Binary, exp.Unary, exp.Cast, exp.Case, exp.If, exp.Between, exp.In, exp.Anonymous,
        exp.Bracket,
    )  # fmt: skip


def below(node: exp.Expr) -> Iterator[exp.Expr]:
    """A node and those below it that belong to the same SELECT."""
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    yield from node.walk(prune=lambda each: isinstance(each, exp.Query) and each is not node)


def function_of_over(window: exp.Expr) -> exp.Expr:
    """The function that OVER applies to."""
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    found: exp.Expr = window.this
    while isinstance(found, exp.Filter | exp.IgnoreNulls | exp.RespectNulls | exp.WithinGroup):
        found = found.this
    return found


@dataclass(frozen=True, slots=True)
class Grouping:
    """Checks the aggregations of one SELECT."""

    select: exp.Select
    scope: Scope
    functions: Functions

    def findings(self) -> Iterator[Finding]:
        yield from self.misplaced()
        keys = self._keys()
        if self._is_grouped() and keys is not None:
            yield from self.ungrouped(keys)

    def aggregates(self, node: exp.Expr | None) -> list[exp.Expr]:
        """The aggregate functions below a node that OVER does not apply to."""
        from sqlglot import exp  # noqa: PLC0415 - takes long to import

        if node is None:
            return []
        inside = list(below(node))
        over = {id(function_of_over(each)) for each in inside if isinstance(each, exp.Window)}
        return [each for each in inside if self._is(each, AGGREGATE) and id(each) not in over]

    def _is(self, node: exp.Expr, kind: str) -> bool:
        from sqlglot import exp  # noqa: PLC0415 - takes long to import

        return isinstance(node, exp.Anonymous) and self.functions.kind(name_of(node)) == kind

    def _is_scalar(self, node: exp.Expr) -> bool:
        from sqlglot import exp  # noqa: PLC0415 - takes long to import

        if not isinstance(node, exp.Anonymous) or not self.functions.is_spark(name_of(node)):
            return False
        return self.functions.kind(name_of(node)) not in {AGGREGATE, OVER_ONLY, ""}

    def _is_grouped(self) -> bool:
        of_projections = any(self.aggregates(each) for each in self.select.expressions)
        return bool(self.select.args.get("group") or self.select.args.get("having") or of_projections)

    def misplaced(self) -> Iterator[Finding]:
        """Aggregate functions where none is allowed, and functions that need OVER."""
        from sqlglot import exp  # noqa: PLC0415 - takes long to import

        select = self.select
        where = select.args.get("where")
        for each in self.aggregates(where):
            yield Finding(
                f"WHERE uses the aggregate function {name_of(each)}", "use HAVING after GROUP BY", *place_in(each)
            )
        for each in self.aggregates(select.args.get("group")):
            yield Finding(f"GROUP BY uses the aggregate function {name_of(each)}", "group by columns", *place_in(each))
        for part in (*select.expressions, *filter(None, [where, select.args.get("having")])):
            inside = list(below(part))
            over = {id(function_of_over(each)) for each in inside if isinstance(each, exp.Window)}
            for each in inside:
                if self._is(each, AGGREGATE) and id(each) not in over:
                    yield from self._nested(each)
                if isinstance(each, exp.Window) and self._is_scalar(function_of_over(each)):
                    name = name_of(function_of_over(each))
                    yield Finding(f"OVER is applied to {name}, which is no aggregate", "remove OVER", *start_of(each))
                if self._is(each, OVER_ONLY) and id(each) not in over:
                    yield Finding(f"{name_of(each)} is used without OVER", "add OVER (…)", *place_in(each))

    def _nested(self, outer: exp.Expr) -> Iterator[Finding]:
        for argument in outer.expressions:
            for each in self.aggregates(argument):
                yield Finding(
                    f"{name_of(outer)} is applied to the aggregate function {name_of(each)}",
                    "compute the inner one in a step or a subquery of its own",
                    *place_in(each),
                )

    def _keys(self) -> list[exp.Expr] | None:
        """The grouping expressions; None if they are not plain expressions (ALL, ROLLUP, CUBE, GROUPING SETS)."""
        from sqlglot import exp  # noqa: PLC0415 - takes long to import

        group = self.select.args.get("group")
        if group is None:
            return []
        if any(value for key, value in group.args.items() if key != "expressions"):
            return None
        found: list[exp.Expr] = []
        by_alias = {each.alias.lower(): each.this for each in self.select.expressions if isinstance(each, exp.Alias)}
        for each in group.expressions:
            if isinstance(each, exp.Tuple | exp.Paren | exp.Rollup | exp.Cube | exp.GroupingSets) or (
                isinstance(each, exp.Column) and each.name.lower() == "all"
            ):
                return None
            if isinstance(each, exp.Literal) and str(each.this).isdigit():
                number = int(each.this) - 1
                if not 0 <= number < len(self.select.expressions) or any(map(is_star, self.select.expressions)):
                    return None
                found.append(self.select.expressions[number].unalias())
                continue
            found.append(each)
            if isinstance(each, exp.Column) and each.name.lower() in by_alias:
                found.append(by_alias[each.name.lower()])
        return found

    def ungrouped(self, keys: list[exp.Expr]) -> Iterator[Finding]:
        """Columns that are neither among the grouping expressions nor inside an aggregate function."""
        having = self.select.args.get("having")
        texts = {self._canonical(each) for each in keys}
        aliases = {each.alias.lower() for each in self.select.expressions if each.alias}
        found = [column for each in self.select.expressions for column in self._loose(each, texts, keys)]
        if having is not None:  # HAVING looks for a name in the result first
            found += [each for each in self._loose(having.this, texts, keys) if self._path(each)[0] not in aliases]
        reported: set[tuple[str, ...]] = set()
        yield from self._star(keys)
        for column in found:
            path = self._path(column)
            if path not in reported:
                reported.add(path)
                name = ".".join(path)
                yield Finding(
                    f"'{name}' is neither grouped nor aggregated",
                    f"add it to GROUP BY, or use an aggregate function, such as max({name})",
                    *start_of(column),
                )

    def _star(self, keys: list[exp.Expr]) -> Iterator[Finding]:
        """`*` among groups: every column of the tables must be grouped."""
        from sqlglot import exp  # noqa: PLC0415 - takes long to import

        stars = [each for each in self.select.expressions if isinstance(each, exp.Star) and not any(each.args.values())]
        grouped = {self._path(each)[0] for each in keys if isinstance(each, exp.Column)}
        if stars and self.scope.is_known and not self.scope.extra:
            loose = [name for name in self.scope.all_columns().names if name.lower() not in grouped]
            if loose:
                yield Finding(
                    f"* includes '{loose[0]}', which is neither grouped nor aggregated",
                    "name the columns of the groups",
                    *start_of(stars[0]),
                )

    def _loose(self, node: exp.Expr, texts: set[str], keys: list[exp.Expr]) -> Iterator[exp.Expr]:
        """Columns below a node that are neither grouped nor inside an aggregate function."""
        from sqlglot import exp  # noqa: PLC0415 - takes long to import

        if self._canonical(node) in texts or self._is(node, AGGREGATE):
            return
        if isinstance(node, exp.Column):
            if not is_star(node) and self._is_loose(node, keys):
                yield node
        elif isinstance(node, plain_nodes()) and not self._is(node, GENERATOR):
            for child in node.iter_expressions():
                yield from self._loose(child, texts, keys)

    def _is_loose(self, column: exp.Expr, keys: list[exp.Expr]) -> bool:
        from sqlglot import exp  # noqa: PLC0415 - takes long to import

        path = self._path(column)
        if not self.scope.is_known or not self.scope.tables_with(path[0]) or path[0] in WINDOWS:
            return False
        grouped = [self._path(each) for each in keys if isinstance(each, exp.Column)]
        return not any(path[: len(each)] == each for each in grouped)

    def _path(self, column: exp.Expr) -> tuple[str, ...]:
        """The column and its fields, without the table."""
        parts = [each.name.lower() for each in column.parts]  # type: ignore[attr-defined]  # `parts` is a property that sqlglot leaves untyped
        return tuple(parts[1:] if len(parts) > 1 and parts[0] in self.scope.tables else parts)

    def _canonical(self, node: exp.Expr) -> str:
        """A text that is equal for expressions that Spark may consider equal, such as `a + b` and `B + t.a`."""
        from sqlglot import exp  # noqa: PLC0415 - takes long to import

        if isinstance(node, exp.Column) and not is_star(node):
            return "column " + ".".join(self._path(node))
        if isinstance(node, exp.Alias | exp.Paren):
            return self._canonical(node.this)
        if isinstance(node, exp.Anonymous) and name_of(node) in WINDOWS and node.expressions:
            return f"{name_of(node)}({', '.join((self._canonical(node.expressions[0]), *lengths_of(node)))})"
        children = sorted(self._canonical(each) for each in node.iter_expressions())
        name = name_of(node) if isinstance(node, exp.Anonymous) else node.name.lower()
        return f"{type(node).__name__} {name} ({', '.join(children)})"
