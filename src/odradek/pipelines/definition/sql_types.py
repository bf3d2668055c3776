"""Derives the types of SQL expressions, and finds calls and operators that Spark refuses for them.

Conservative: what is not known to be refused by Spark is not reported, and what is not known has no type.
"""

from __future__ import annotations

import functools
from dataclasses import field
from typing import TYPE_CHECKING

from odradek.conventions.dataclass import dataclass
from odradek.pipelines.definition.built_types import built_type, declared_type, literal_type
from odradek.pipelines.definition.column_types import Array, ColumnType, Map, Primitive, Struct
from odradek.pipelines.definition.spark_functions import Answer, Functions, operate
from odradek.pipelines.definition.sql_calls import WITH_UNIT, arguments_of, is_qualified
from odradek.pipelines.definition.sql_findings import Finding
from odradek.pipelines.definition.sql_written import is_star, name_of, start_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlglot import exp

    from odradek.pipelines.definition.sql_scope import Scope

BOOLEAN, BIGINT, DOUBLE = (Primitive(name) for name in ("BOOLEAN", "BIGINT", "DOUBLE"))
STRING, TIMESTAMP, DATE = (Primitive(name) for name in ("STRING", "TIMESTAMP", "DATE"))
SAME_TYPE = frozenset({"max", "min", "first", "last", "any_value", "first_value", "last_value"})
BUILDERS = frozenset({"struct", "named_struct", "array", "map", "collect_list", "collect_set"})
OF_ARRAYS = frozenset({"transform", "filter", "exists", "forall", "aggregate", "reduce", "zip_with"})
OF_MAPS = frozenset({"map_filter", "transform_keys", "transform_values", "map_zip_with"})
# Functions whose first two arguments are the same with more arguments.
FIRST_TWO = frozenset({"substring", "substr", "lpad", "rpad", "regexp_extract", "split"})
COMMON_TYPE = frozenset({"coalesce", "ifnull", "nvl", "greatest", "least"})
TEXT_RESULT = frozenset({"concat_ws", "regexp_replace", "regexp_extract", "replace", "lpad", "rpad", "translate"})
COMPARED = frozenset({"=", "<", "<=>", "in", "between"})


@functools.cache
def operators() -> dict[type[exp.Expr], str]:
    from sqlglot import exp  # noqa: PLC0415 - parsed already, so imported already

    return {
        exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%", exp.IntDiv: "div", exp.DPipe: "||",
        exp.BitwiseAnd: "&", exp.BitwiseOr: "|", exp.BitwiseXor: "^", exp.EQ: "=", exp.NEQ: "=", exp.GT: "<",
        exp.GTE: "<", exp.LT: "<", exp.LTE: "<", exp.NullSafeEQ: "<=>", exp.And: "and", exp.Or: "or",
        exp.Like: "like", exp.ILike: "like", exp.RegexpLike: "rlike",
    }  # fmt: skip


def shown(kind: ColumnType | None) -> str:
    text = "?" if kind is None else kind.ddl
    return text if len(text) <= 60 else text[:57] + "…"


@dataclass(slots=True)
class Typing:
    """Types the expressions of one SELECT; `findings` collects what Spark would refuse."""

    scope: Scope
    functions: Functions
    aliases: frozenset[str] = frozenset()  # of the SELECT: they may stand for an expression of any type
    named: dict[str, ColumnType | None] = field(default_factory=dict)  # earlier columns of the SELECT, by alias
    findings: list[Finding] = field(default_factory=list)

    def report(self, node: exp.Expr, message: str, hint: str) -> None:
        self.findings.append(Finding(message, hint, *start_of(node)))

    def type_of(self, node: exp.Expr) -> ColumnType | None:
        """The type of an expression; None if it is not known."""
        from sqlglot import exp  # noqa: PLC0415 - takes long to import

        if type(node) in operators():
            return self._operator(node, operators()[type(node)])
        if isinstance(node, exp.Anonymous):
            return self._call(node)
        if isinstance(node, exp.Column):
            return self._column(node)
        if isinstance(node, exp.Paren | exp.Alias | exp.IgnoreNulls | exp.RespectNulls):
            return self.type_of(node.this)
        if isinstance(node, exp.Cast):
            return self._cast(node)
        if isinstance(node, exp.Literal):
            return literal_type(node)
        if isinstance(node, exp.Query | exp.Lambda | exp.Exists | exp.Interval | exp.Subquery):
            return None
        return self._other(node)

    def _other(self, node: exp.Expr) -> ColumnType | None:
        from sqlglot import exp  # noqa: PLC0415 - takes long to import

        if isinstance(node, exp.Not | exp.Neg):
            operator = "not" if isinstance(node, exp.Not) else "-"
            return self._judged(node, operator, operate(operator, kind := self.type_of(node.this)), (kind,))
        if isinstance(node, exp.Case | exp.If):
            return self._case(node)
        if isinstance(node, exp.Between):
            kinds = [self.type_of(node.this), self.type_of(node.args["low"]), self.type_of(node.args["high"])]
            for other in kinds[1:]:
                self._judged(node, "between", operate("=", kinds[0], other), (kinds[0], other))
            return BOOLEAN
        if isinstance(node, exp.In):
            kind = self.type_of(node.this)
            for each in node.expressions:
                other = self.type_of(each)
                self._judged(node, "in", operate("=", kind, other), (kind, other))
            return BOOLEAN
        if isinstance(node, exp.Bracket):
            return self._item(node)
        if isinstance(node, exp.Dot):
            return self._dot(node)
        if isinstance(node, exp.Window | exp.WithinGroup):
            return self._around(node)
        if isinstance(node, exp.Filter):
            self.condition(node.expression.this, "FILTER")
            return self.type_of(node.this)
        simple = {exp.Boolean: BOOLEAN, exp.CurrentTimestamp: TIMESTAMP, exp.CurrentDate: DATE, exp.Is: BOOLEAN}
        for child in node.iter_expressions():
            self.type_of(child)
        return next((kind for known, kind in simple.items() if type(node) is known), None)

    def _around(self, node: exp.Expr) -> ColumnType | None:
        """OVER and WITHIN GROUP: the type is that of the function."""
        for key, value in node.args.items():
            for child in value if isinstance(value, list) else [value]:
                if key != "this" and hasattr(child, "walk"):
                    self.type_of(child)
        return self.type_of(node.this)

    def condition(self, node: exp.Expr, clause: str) -> None:
        """Types the condition of a clause, which must be a BOOLEAN."""
        kind = self.type_of(node)
        if operate("where", kind) is Answer.REFUSED:
            self.report(node, f"{clause} is given {shown(kind)}, not a BOOLEAN", "write a condition, such as a > 0")

    def _operator(self, node: exp.Expr, operator: str) -> ColumnType | None:
        from sqlglot import exp  # noqa: PLC0415 - takes long to import

        left, right = self.type_of(node.this), self.type_of(node.expression)
        if operator in {"+", "-"} and isinstance(node.expression, exp.Interval):
            return left if left == TIMESTAMP else None
        return self._judged(node, operator, operate(operator, left, right), (left, right))

    def _judged(
        self, node: exp.Expr, operator: str, answer: ColumnType | Answer, types: Sequence[ColumnType | None]
    ) -> ColumnType | None:
        if answer is Answer.REFUSED:
            both = " and ".join(map(shown, types))
            if operator in COMPARED:
                self.report(node, f"{both} cannot be compared", "compare values of one type, or fields of a struct")
            else:
                self.report(node, f"'{operator.upper()}' cannot be applied to {both}", "cast them, or use a field")
        return None if isinstance(answer, Answer) else answer

    def _cast(self, node: exp.Cast) -> ColumnType | None:
        kind = self.type_of(node.this)
        target = declared_type(node.args["to"].sql(dialect="spark"))
        if target is not None and operate(f"cast {target.ddl}", kind) is Answer.REFUSED:
            self.report(node, f"{shown(kind)} cannot be cast to {target.ddl}", "cast a field or an element of it")
        return target

    def _case(self, node: exp.Expr) -> ColumnType | None:
        from sqlglot import exp  # noqa: PLC0415 - takes long to import

        branches = node.args["ifs"] if isinstance(node, exp.Case) else [node]
        subject = node.args.get("this") if isinstance(node, exp.Case) else None
        if subject is not None:
            self.type_of(subject)
        results = []
        for each in branches:
            if subject is None:
                self.condition(each.this, "WHEN" if isinstance(node, exp.Case) else "IF")
            else:
                self.type_of(each.this)
            results.append(each.args.get("true"))
        results.append(node.args.get("default") if isinstance(node, exp.Case) else node.args.get("false"))
        types = [self.type_of(each) for each in results if each is not None]
        return self._common(node, types, "CASE" if isinstance(node, exp.Case) else "IF")

    def _common(self, node: exp.Expr, types: Sequence[ColumnType | None], what: str) -> ColumnType | None:
        """The common type of several results."""
        found = types[0] if types else None
        for each in types[1:]:
            if each == found:
                continue
            answer = operate("if", found, each)
            if answer is Answer.REFUSED:
                self.report(node, f"the results of {what} are {shown(found)} and {shown(each)}", "cast one of them")
            found = None if isinstance(answer, Answer) else answer
        return found

    def _column(self, node: exp.Column) -> ColumnType | None:
        from sqlglot import exp  # noqa: PLC0415 - takes long to import

        parts = list(node.parts)
        if any(isinstance(part, exp.Star) for part in parts):
            return None
        kind: ColumnType | None
        first = parts.pop(0)
        if parts and first.name.lower() in self.scope.tables:
            columns = self.scope.tables[first.name.lower()]
            kind = None if columns is None else columns.type_of(parts.pop(0).name)
        else:
            kind = None if first.name.lower() in self.aliases else self.scope.type_of(first.name)
            if self.scope.is_known and not self.scope.tables_with(first.name):
                kind = self.named.get(first.name.lower())
        for part in parts:
            kind = self.field(kind, part, node)
        return kind

    def field(self, kind: ColumnType | None, part: exp.Expr, node: exp.Expr) -> ColumnType | None:
        """The type of a field of a struct, of the structs in an array, or of a map's value."""
        if isinstance(kind, Struct):
            return next((each.type for each in kind.fields if each.name.lower() == part.name.lower()), None)
        if isinstance(kind, Map):
            return kind.value
        if isinstance(kind, Array) and isinstance(kind.element, Struct):
            found = self.field(kind.element, part, node)
            return None if found is None else Array(found)
        if kind is not None and kind != Primitive("VARIANT"):
            name = node.sql(dialect="spark").partition(f".{part.name}")[0]
            self.report(
                part, f"'{part.name}' is read as a field of {name}, which is {shown(kind)}", "only a STRUCT has fields"
            )
        return None

    def _dot(self, node: exp.Dot) -> ColumnType | None:
        from sqlglot import exp  # noqa: PLC0415 - takes long to import

        kind = self.type_of(node.this)
        return self.field(kind, node.expression, node) if isinstance(node.expression, exp.Identifier) else None

    def _item(self, node: exp.Bracket) -> ColumnType | None:
        kind = self.type_of(node.this)
        index = [self.type_of(each) for each in node.expressions]
        if len(index) != 1:
            return None
        if isinstance(kind, Array):
            if index[0] in (STRING, DOUBLE, BOOLEAN, TIMESTAMP, DATE):
                self.report(node, f"an element of an ARRAY is read by {shown(index[0])}", "use a number: items[0]")
            return kind.element
        if isinstance(kind, Map):
            return kind.value
        if kind is not None and not isinstance(kind, Struct) and kind != Primitive("VARIANT"):
            self.report(node, f"an element is read from {shown(kind)}", "only ARRAY, MAP and STRUCT have elements")
        return None

    def _call(self, node: exp.Anonymous) -> ColumnType | None:
        from sqlglot import exp  # noqa: PLC0415 - takes long to import

        name = name_of(node)
        arguments = arguments_of(node)
        types = [self.type_of(each) for each in arguments]
        if is_qualified(node) or not self.functions.is_known(name):
            return None  # names are checked for the whole query at once
        self._higher_order(node, name, types)
        if any(
            isinstance(each, exp.Star | exp.Lambda | exp.Kwarg | exp.PropertyEQ) or is_star(each) for each in arguments
        ):
            return BIGINT if name == "count" else None
        if name in WITH_UNIT and len(types) != 2:
            return None
        return self._called(node, name, types)

    def _called(self, node: exp.Anonymous, name: str, types: Sequence[ColumnType | None]) -> ColumnType | None:
        if not self.functions.takes(name, len(types)):
            return None  # checked with the names
        if name in BUILDERS and self.functions.is_spark(name):
            self._refused(node, name, types)
            if name == "array":
                self._common(node, types, name)
            return built_type(name, node.expressions, types)
        if name in COMMON_TYPE and len(types) > 1 and self.functions.is_spark(name):
            if name in {"greatest", "least"}:
                self.order(node, types[0], name)
            return self._common(node, types, name)
        if name == "count" and self.functions.is_spark(name):
            return BIGINT
        if name in FIRST_TWO and len(types) > 2:
            self._refused(node, name, types[:2])
        answer = self._refused(node, name, types)
        if not isinstance(answer, Answer):
            return answer
        if name in SAME_TYPE and answer is not Answer.REFUSED:
            return types[0]
        return STRING if name in TEXT_RESULT and self.functions.is_spark(name) else None

    def _refused(self, node: exp.Expr, name: str, types: Sequence[ColumnType | None]) -> ColumnType | Answer:
        """The answer to a call; a refusal is reported."""
        answer = self.functions.call(name, types)
        if answer is Answer.REFUSED:
            self.report(node, f"{name} does not take {' and '.join(map(shown, types))}", hint_for(name, types))
        return answer

    def _higher_order(self, node: exp.Expr, name: str, types: Sequence[ColumnType | None]) -> None:
        """Functions of a container and a lambda."""
        wanted = Array if name in OF_ARRAYS else Map if name in OF_MAPS else None
        if wanted is None or not types or types[0] is None or not self.functions.is_spark(name):
            return
        if not isinstance(types[0], wanted):
            self.report(node, f"{name} does not take {shown(types[0])}", f"it takes {wanted.__name__.upper()}")

    def order(self, node: exp.Expr, kind: ColumnType | None, what: str) -> None:
        if operate("order by", kind) is Answer.REFUSED:
            self.report(node, f"{what} is given {shown(kind)}, which has no order", "use a field or an element of it")


def hint_for(name: str, types: Sequence[ColumnType | None]) -> str:
    if name.startswith(("explode", "posexplode", "inline")):
        return "it takes an ARRAY or a MAP"
    if any(isinstance(each, Struct) for each in types):
        return "use a field of the struct"
    return "cast the argument, or use another function"
