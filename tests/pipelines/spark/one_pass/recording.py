"""Records a call of each safe function, derived from the examples in Spark's own documentation of it.

`python -m tests.pipelines.spark.one_pass.recording` writes `function_calls.json`: an expression over columns, and the
literals of those columns. Functions without a usable example have a call in `OWN`.
"""

from __future__ import annotations

import json
import re
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from odradek.pipelines.planning.sql_tokens import Kind, tokenize
from odradek.pipelines.spark.one_pass.expressions import parse_expression
from odradek.pipelines.spark.one_pass.row_columns import NotLiftable
from odradek.pipelines.spark.one_pass.safe_functions import CLOCK, SAFE_FUNCTIONS
from odradek.pipelines.spark.sessions.session import start_session
from tests.pipelines.spark.one_pass.lifting import lifted, plain, results

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

FILE = Path(__file__).parent / "function_calls.json"
EXAMPLE = re.compile(r"> SELECT (.*?);", re.DOTALL)
TYPED = frozenset({"date", "timestamp", "timestamp_ntz", "timestamp_ltz", "time", "interval", "x"})
CASTS = {
    "bigint": "12", "binary": "'ab'", "boolean": "'true'", "date": "'2026-01-31'", "decimal": "'12'", "double": "'1.5'",
    "float": "'1.5'", "int": "'12'", "smallint": "'12'", "string": "1.5", "timestamp": "'2026-01-31 12:00'",
    "tinyint": "'12'",
}  # fmt: skip
OWN: dict[str, tuple[str, list[str]]] = {
    **{name: (f"{name}(c0)", [value]) for name, value in CASTS.items()},
    "date_part": ("date_part('YEAR', c0)", ["timestamp '2019-08-12 01:00:00.123456'"]),
    "datepart": ("datepart('DAY', c0)", ["timestamp '2019-08-12 01:00:00.123456'"]),
    "e": ("e() + c0", ["1"]),
    "pi": ("pi() + c0", ["1"]),
    "make_interval": ("cast(make_interval(c0, c1) as string)", ["100", "11"]),
    "try_make_interval": ("cast(try_make_interval(c0, c1) as string)", ["100", "11"]),
    "make_ym_interval": ("cast(make_ym_interval(c0, c1) as string)", ["1", "2"]),
    "map_from_entries": ("map_from_entries(array(struct(c0, c1)))", ["1", "'a'"]),
    "named_struct": ("named_struct('a', c0, 'b', c1)", ["1", "2"]),
    "overlay": ("overlay(c0, c1, c2)", ["'Spark SQL'", "'_'", "6"]),
    "schema_of_csv": ("schema_of_csv('1,abc') || c0", ["'!'"]),
    "schema_of_json": ("schema_of_json('[{\"col\":0}]') || c0", ["'!'"]),
    "to_csv": ("to_csv(named_struct('a', c0, 'b', c1))", ["1", "2"]),
    "hash": ("hash(c0, c1)", ["'Spark'", "array(1, 2)"]),
    "len": ("len(c0)", ["'Spark'"]),
}


def variants(example: str) -> Iterator[tuple[str, list[str]]]:
    """The example with all of its literals as columns, then with ever fewer of them."""
    tokens = tokenize(example)
    literals = []
    for index, token in enumerate(tokens):
        before = tokens[index - 1] if index else None
        is_typed = before is not None and before.is_word(*TYPED)
        if token.kind in {Kind.STRING, Kind.NUMBER} and not is_typed:
            literals.append(index)
    for count in dict.fromkeys([len(literals), 1, 2, 3]):
        if 0 < count <= len(literals):
            yield with_columns(example, [tokens[index] for index in literals[:count]])


def with_columns(example: str, literals: list) -> tuple[str, list[str]]:  # type: ignore[type-arg]  # tokens of Java
    parts, position = [], 0
    for number, token in enumerate(literals):
        parts += [example[position : token.start], f"c{number}"]
        position = token.end
    return "".join([*parts, example[position:]]), [token.text for token in literals]


def is_same(session: SparkSession, call: str, values: list[str]) -> bool:
    names = ", ".join(f"c{number}" for number in range(len(values)))
    try:
        frame = session.sql(f"select * from values ({', '.join(values)}) as t({names})")  # computed without a job
        query = f"select {call} as result from readings"
        return results(lifted(frame, query)) == results(plain(frame, query))
    except (NotLiftable, PySparkException):
        return False


def is_computed(session: SparkSession, call: str, values: list[str]) -> bool:
    """Whether the call is lifted and accepted by Spark."""
    names = ", ".join(f"c{number}" for number in range(len(values)))
    try:
        parse_expression(call)
        session.sql(f"select {call} as result from values ({', '.join(values)}) as t({names})").collect()
    except (NotLiftable, PySparkException, Py4JError):
        return False
    return True


def examples(session: SparkSession, name: str) -> list[str]:
    identifier = session._jvm.org.apache.spark.sql.catalyst.FunctionIdentifier  # type: ignore[union-attr]  # a local session has a JVM
    text = session._jsparkSession.sessionState().catalog().lookupFunctionInfo(identifier(name)).getExamples()
    return [each for each in EXAMPLE.findall(text) if re.search(rf"\b{re.escape(name)}\s*\(", each, re.IGNORECASE)]


def recorded(session: SparkSession) -> dict[str, dict[str, object]]:
    calls: dict[str, dict[str, object]] = {}
    names = {row[0] for row in session.sql("show functions").collect()}
    for name in sorted(SAFE_FUNCTIONS & names):
        own = [OWN[name]] if name in OWN else []
        tried = [*own, *(each for example in examples(session, name) for each in islice(variants(example), 4))]
        found = next((each for each in tried if is_computed(session, *each)), None)
        if found is None and name not in CLOCK.split():
            print(f"no call of {name}: {tried[:3]}", flush=True)
        elif found is not None:
            calls[name] = {"call": found[0], "values": found[1]}
    return calls


if __name__ == "__main__":
    spark = start_session("recording", {"spark.sql.session.timeZone": "UTC"}, "local[2]", has_connector=False)
    FILE.write_text(json.dumps(recorded(spark), indent=1) + "\n")
    spark.stop()
