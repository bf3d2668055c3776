"""Queries that are drawn from a grammar: expressions of any depth over any columns, right and wrong ones alike."""

from __future__ import annotations

import random

from tests.pipelines.analysis.corpus import TABLES

SEED = 20260131
COLUMNS = [each.split()[0] for each in (
    "id", "customer", "amount", "price", "quantity", "at", "day", "is_paid", "tags", "lines", "address", "attributes",
    "payload", "weight", "small", "address.city", "address.zip", "address.geo.lat", "address.geo", "lines[0].count",
    "tags[0]", "attributes['x']", "lines[0]",
)]  # fmt: skip
LITERALS = ["1", "2.5", "'a'", "'2026-01-01'", "true", "null", "date'2026-01-01'", "array(1)", "1e3", "10000000000"]
BINARY = ["+", "-", "*", "/", "%", "=", "<", ">=", "<>", "and", "or", "||", "like", "<=>", "&"]
ONE = [
    "upper", "lower", "length", "abs", "round", "sqrt", "year", "hour", "to_timestamp", "to_date", "size", "reverse",
    "explode", "sort_array", "md5", "isnull", "not", "-", "string", "int", "double", "trim", "ceil", "to_json",
    "map_keys", "base64", "dayofweek", "unix_timestamp", "hash", "isnan", "array_distinct", "hex", "ln", "initcap",
]  # fmt: skip
TWO = [
    "concat", "coalesce", "nvl", "date_add", "date_trunc", "date_format", "greatest", "least", "array_contains",
    "element_at", "pow", "nullif", "split", "instr", "datediff", "round", "array_join", "concat_ws", "format_number",
    "substring", "left", "add_months", "months_between", "startswith", "contains", "array_union", "try_divide",
]  # fmt: skip
AGGREGATES = [
    "sum",
    "avg",
    "max",
    "min",
    "count",
    "collect_list",
    "first",
    "stddev",
    "bool_and",
    "collect_set",
    "count_if",
]


class Generator:
    """Draws queries; the same seed draws the same ones."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def expression(self, depth: int) -> str:
        one = self._random.random()
        if depth <= 0 or one < 0.25:
            return self._random.choice(COLUMNS) if self._random.random() < 0.75 else self._random.choice(LITERALS)
        if one < 0.5:
            operator = self._random.choice(BINARY)
            return f"({self.expression(depth - 1)} {operator} {self.expression(depth - 1)})"
        if one < 0.72:
            name = self._random.choice(ONE)
            separator = " " if name in {"not", "-"} else ""
            return f"{name}{separator}({self.expression(depth - 1)})"
        if one < 0.9:
            return f"{self._random.choice(TWO)}({self.expression(depth - 1)}, {self.expression(depth - 1)})"
        if one < 0.95:
            condition, one_result, other = (self.expression(depth - 1) for _ in range(3))
            return f"case when {condition} then {one_result} else {other} end"
        kind = self._random.choice(["int", "string", "timestamp", "double", "boolean", "date"])
        return f"cast({self.expression(depth - 1)} as {kind})"

    def query(self) -> str:
        kind = self._random.random()
        depth = self._random.choice([1, 1, 2, 2, 3])
        if kind < 0.5:
            return f"select {self.expression(depth)} as x from orders"
        if kind < 0.65:
            return f"select id from orders where {self.expression(depth)}"
        if kind < 0.72:
            return f"select {self.expression(1)} as x from orders union all select {self.expression(1)} from orders"
        return self._grouped()

    def _grouped(self) -> str:
        keys = self._random.sample(COLUMNS[:9], self._random.choice([1, 1, 2]))
        items = [self._random.choice(keys) if self._random.random() < 0.7 else self.expression(1)]
        items += [f"{self._random.choice(AGGREGATES)}({self.expression(self._random.choice([0, 1]))})"]
        if self._random.random() < 0.3:
            items.append(f"{self._random.choice(keys)} {self._random.choice(BINARY)} {self._random.choice(COLUMNS)}")
        having = f" having {items[-1]} > 1" if self._random.random() < 0.15 else ""
        group = f" group by {', '.join(keys)}" if self._random.random() < 0.85 else ""
        return f"select {', '.join(items)} from orders{group}{having}"


def generated(count: int, seed: int = SEED) -> list[str]:
    assert "orders" in TABLES
    generator = Generator(seed)
    return list(dict.fromkeys(generator.query() for _ in range(count)))
