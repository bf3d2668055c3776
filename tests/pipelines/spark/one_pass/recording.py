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

from odradek.pipelines.spark.one_pass.row_columns import NotLiftable
from odradek.pipelines.spark.one_pass.safe_functions import SAFE_FUNCTIONS
from odradek.pipelines.spark.session import start_session
from odradek.pipelines.spark.sql_tokens import Kind, tokenize
from tests.pipelines.spark.one_pass.lifting import lifted, plain, results

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

FILE = Path(__file__).parent / "function_calls.json"
EXAMPLE = re.compile(r"> SELECT (.*?);", re.DOTALL)
TYPED = frozenset({"date", "timestamp", "timestamp_ntz", "timestamp_ltz", "time", "interval", "x"})
OWN: dict[str, tuple[str, list[str]]] = {
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
    for count in range(len(literals), 0, -1):
        yield with_columns(example, [tokens[index] for index in literals[:count]])
    for index in literals:
        yield with_columns(example, [tokens[index]])


def with_columns(example: str, literals: list) -> tuple[str, list[str]]:  # type: ignore[type-arg]
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
    except NotLiftable:
        return False
    except Exception as error:
        if hasattr(error, "getCondition"):
            return False
        raise


def examples(session: SparkSession, name: str) -> list[str]:
    text = "\n".join(row[0] for row in session.sql(f"describe function extended `{name}`").collect())
    return [each for each in EXAMPLE.findall(text) if re.search(rf"\b{re.escape(name)}\s*\(", each, re.IGNORECASE)]


def recorded(session: SparkSession) -> dict[str, dict[str, object]]:
    calls: dict[str, dict[str, object]] = {}
    names = {row[0] for row in session.sql("show functions").collect()}
    for name in sorted(SAFE_FUNCTIONS & names):
        own = [OWN[name]] if name in OWN else []
        tried = [*own, *(each for example in examples(session, name) for each in islice(variants(example), 8))]
        found = next((each for each in tried if is_same(session, *each)), None)
        if found is None:
            print(f"no call of {name}: {tried[:3]}")
        else:
            calls[name] = {"call": found[0], "values": found[1]}
    return calls


if __name__ == "__main__":
    spark = start_session("recording", {"spark.sql.session.timeZone": "UTC"}, "local[2]", has_connector=False)
    FILE.write_text(json.dumps(recorded(spark), indent=1) + "\n")
    spark.stop()
