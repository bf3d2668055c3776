"""Records Spark's functions: names, kinds, numbers of arguments, and for one and two arguments the types.

`python -m tests.pipelines.analysis.record_functions` asks the installed PySpark, writes
`recorded/functions-VERSION.json`, and merges all recorded versions to `spark_functions.json`, which `validate` reads.
It takes some minutes; `--only=abs,ceil` records these functions again, `--counts` the
numbers of arguments, `--merge` merges only.
"""

from __future__ import annotations

import itertools
import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyspark
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from odradek.pipelines.definition import type_letters
from odradek.pipelines.definition.type_letters import ARGUMENTS, OTHER, PAIRED, REFUSED, RESULTS, UNDECIDED
from tests.pipelines.analysis.merging import merged
from tests.pipelines.analysis.spark_answers import create_tables, plain_session

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

RECORDED = Path(__file__).with_name("recorded")
STORED = Path(type_letters.__file__).with_name("spark_functions.json")
AT_ONCE = 121  # calls in one query
MOST_ARGUMENTS = 9  # stands for any number from there on
WORD = re.compile(r"[a-z_]\w*\Z")
OPERATOR_NAMES = ("and", "or", "not", "between", "case", "when", "in", "like", "ilike", "div", "mod", "rlike")
LITERALS = {
    "b": "true", "i": "1", "l": "1L", "d": "1.0D", "n": "CAST(1 AS DECIMAL(10,2))", "s": "'a'", "y": "X'41'",
    "D": "DATE'2026-01-01'", "t": "TIMESTAMP'2026-01-01 00:00:00'", "a": "array(1)", "A": "array('a')",
    "R": "array(named_struct('k', 'a', 'v', 1))", "Q": "array(array(1))", "m": "map('a', 1)",
    "r": "named_struct('x', 1)",
}  # fmt: skip
COLUMNS = {letter: f"c{number}" for number, letter in enumerate(ARGUMENTS)}
OPERATORS = {
    "- 1": "-{0}", "not 1": "NOT {0}",
    "+ 2": "{0} + {1}", "- 2": "{0} - {1}", "* 2": "{0} * {1}", "/ 2": "{0} / {1}", "% 2": "{0} % {1}",
    "div 2": "{0} DIV {1}", "|| 2": "{0} || {1}", "& 2": "{0} & {1}", "| 2": "{0} | {1}", "^ 2": "{0} ^ {1}",
    "= 2": "{0} = {1}", "< 2": "{0} < {1}", "<=> 2": "{0} <=> {1}", "and 2": "{0} AND {1}", "or 2": "{0} OR {1}",
    "like 2": "{0} LIKE {1}", "rlike 2": "{0} RLIKE {1}", "[] 2": "{0}[{1}]",
    "if 2": "CASE WHEN true THEN {0} ELSE {1} END",
}  # fmt: skip
CLAUSES = {
    "where 1": "SELECT 1 AS x FROM probe WHERE {0}",
    "order by 1": "SELECT 1 AS x FROM probe ORDER BY {0}",
    "union 2": "SELECT {0} AS x FROM probe UNION ALL SELECT {1} FROM probe",
}
FUNCTIONS_OF_TWO = frozenset({
    "add_months", "approx_percentile", "array_append", "array_contains", "array_except", "array_intersect",
    "array_join", "array_position", "array_prepend", "array_remove", "array_repeat", "array_union", "arrays_overlap",
    "atan2", "bround", "concat", "concat_ws", "contains", "corr", "covar_pop", "date_add", "date_diff", "date_format",
    "date_part", "date_sub", "date_trunc", "datediff", "decode", "element_at", "encode", "endswith", "equal_null",
    "find_in_set", "format_number", "format_string", "from_unixtime", "from_utc_timestamp", "get_json_object", "hypot",
    "instr", "last_value", "left", "levenshtein", "locate", "log", "lpad", "map_contains_key", "map_from_arrays",
    "max_by", "min_by", "mod", "months_between", "next_day", "nullif", "percentile", "percentile_approx", "pmod",
    "position", "pow", "power", "regexp", "regexp_count", "regexp_extract", "regexp_like", "repeat", "right", "round",
    "rpad", "sequence", "sha2", "shiftleft", "shiftright", "sort_array", "split", "startswith", "str_to_map", "substr",
    "substring", "to_char", "to_date", "to_timestamp", "to_utc_timestamp", "trunc", "try_add", "try_divide",
    "try_multiply", "try_subtract", "unix_timestamp",
})  # fmt: skip
CASTS = ("BOOLEAN", "INT", "BIGINT", "DOUBLE", "DECIMAL(10,2)", "STRING", "BINARY", "DATE", "TIMESTAMP")
# Conditions that depend on the values or on being constant, not on the types.
OF_VALUES = re.compile(r"NON_FOLDABLE|VALUE_OUT_OF_RANGE|UNEXPECTED_NULL|NON_STRING|WRONG_NUM_ARGS|INVALID_ARG")
OF_TYPES = re.compile(r"DATATYPE_MISMATCH\.|INVALID_EXTRACT|INCOMPATIBLE_COLUMN_TYPE")


def simple(ddl: str) -> str:
    return ddl.lower().replace(" ", "")


LETTERS = {simple(ddl): letter for letter, ddl in RESULTS.items()}


def analysed(session: SparkSession, query: str) -> Any:
    """Spark's plan of a query after its analysis, before it is checked for errors."""
    state = session._jsparkSession.sessionState()
    return state.analyzer().execute(state.sqlParser().parsePlan(query))


def asked(session: SparkSession, calls: list[str]) -> list[str]:
    """The answers to calls, asked in queries of many each."""
    found: list[str] = []
    for begin in range(0, len(calls), AT_ONCE):
        found += asked_at_once(session, calls[begin : begin + AT_ONCE])
    return found


def asked_at_once(session: SparkSession, calls: list[str]) -> list[str]:
    items = ", ".join(f"{call} AS x{number}" for number, call in enumerate(calls))
    try:
        found = analysed(session, f"SELECT {items} FROM probe").expressions()
        if found.size() == len(calls):
            return [of_expression(found.apply(number)) for number in range(len(calls))]
    except (Py4JError, PySparkException):
        pass
    if len(calls) == 1:
        return [UNDECIDED]
    middle = len(calls) // 2
    return asked_at_once(session, calls[:middle]) + asked_at_once(session, calls[middle:])


def of_expression(found: Any) -> str:
    """The answer for one expression of an analysed plan."""
    if found.resolved():
        return LETTERS.get(simple(found.dataType().simpleString()), OTHER)
    try:
        while not found.childrenResolved():
            children = found.children()
            found = next(each for each in map(children.apply, range(children.size())) if not each.resolved())
        result = found.checkInputDataTypes()
        is_of_types = result.isFailure() and not OF_VALUES.search(str(result.errorSubClass()))
    except (Py4JError, PySparkException, TypeError, StopIteration):
        return UNDECIDED
    return REFUSED if is_of_types else UNDECIDED


def of_clause(session: SparkSession, query: str) -> str:
    try:
        kind = session.sql(query).schema[0].dataType.simpleString()
    except PySparkException as error:
        condition = str(error.getCondition() or "")
        return REFUSED if OF_TYPES.search(condition) and not OF_VALUES.search(condition) else UNDECIDED
    return LETTERS.get(simple(kind), OTHER)


def answers(ask: Callable[[list[str]], list[str]], template: str, count: int) -> str:
    """The result for every combination of types; refused only if columns and constants are."""
    every = list(itertools.product(ARGUMENTS if count == 1 else PAIRED, repeat=count))
    found = ask([template.format(*(COLUMNS[letter] for letter in letters)) for letters in every])
    left = [number for number, each in enumerate(found) if each in {REFUSED, UNDECIDED}]
    constants = [template.format(*(LITERALS[letter] for letter in every[number])) for number in left]
    for number, constant in zip(left, ask(constants), strict=True):
        if constant != REFUSED:
            found[number] = constant
    return "".join(found)


def counts(session: SparkSession, name: str) -> list[int]:
    """The numbers of arguments that are not refused as such."""
    given = expected(session, name, 25)
    if given is None:
        fewest = next((count for count in range(4) if expected(session, name, count) is None), 0)
        return list(range(fewest, MOST_ARGUMENTS + 1))
    # The error does not name every number for functions with several forms.
    more = [count for count in range(5) if count not in given and expected(session, name, count) is None]
    return sorted({*given, *more})


def expected(session: SparkSession, name: str, count: int) -> list[int] | None:
    """The numbers of arguments in Spark's error about this one; None if there is no such error."""
    try:
        session.sql(f"SELECT {name}({', '.join(['c5'] * count)}) FROM probe")
    except PySparkException as error:
        if "WRONG_NUM_ARGS" not in str(error.getCondition()):
            return None
        text = str((error.getMessageParameters() or {}).get("expectedNum"))
        numbers = [int(each) for each in re.findall(r"\d+", text)]
        if not numbers or re.search(r"[><]", text) or max(numbers) >= MOST_ARGUMENTS:
            return list(range(MOST_ARGUMENTS + 1))
        return numbers
    return None


def kinds(session: SparkSession) -> dict[str, str]:
    """The group of each built-in function: agg_funcs, window_funcs, generator_funcs …."""
    machine: Any = session._jvm
    registry = machine.org.apache.spark.sql.catalyst.analysis.FunctionRegistry.builtin()
    found = {}
    for row in session.sql("SHOW SYSTEM FUNCTIONS").collect():
        info = registry.lookupFunction(machine.org.apache.spark.sql.catalyst.FunctionIdentifier(row[0]))
        found[row[0]] = str(info.get().getGroup()) if info.isDefined() else ""
    return found


def recorded_operators(session: SparkSession) -> dict[str, str]:
    def clauses(texts: list[str]) -> list[str]:
        return [of_clause(session, text) for text in texts]

    def calls(texts: list[str]) -> list[str]:
        return asked(session, texts)

    found = {name: answers(calls, template, int(name[-1])) for name, template in OPERATORS.items()}
    found |= {name: answers(clauses, template, int(name[-1])) for name, template in CLAUSES.items()}
    return found | {f"cast {kind} 1": answers(calls, f"CAST({{0}} AS {kind})", 1) for kind in CASTS}


def recorded_function(session: SparkSession, name: str, kind: str) -> dict[str, Any]:
    def calls(texts: list[str]) -> list[str]:
        return asked(session, texts)

    entry: dict[str, Any] = {"kind": kind, "counts": counts(session, name)}
    if 1 in entry["counts"]:
        entry["1"] = answers(calls, f"{name}({{0}})", 1)
    if name in FUNCTIONS_OF_TWO and 2 in entry["counts"]:
        entry["2"] = answers(calls, f"{name}({{0}}, {{1}})", 2)
    return entry


def main() -> None:
    """`--only=a,b` records these functions again, `--counts` numbers of arguments, `--merge` nothing."""
    only = next((each.removeprefix("--only=").split(",") for each in sys.argv if each.startswith("--only=")), None)
    only = [] if "--counts" in sys.argv else only
    if "--merge" not in sys.argv:
        path = RECORDED / f"functions-{pyspark.__version__}.json"
        with plain_session() as session:
            create_tables(session, {"probe": ", ".join(f"{COLUMNS[each]} {ddl}" for each, ddl in ARGUMENTS.items())})
            nothing: dict[str, Any] = {"version": pyspark.__version__, "functions": {}}
            found = nothing if only is None else json.loads(path.read_text())
            if only is None:
                found["operators"] = recorded_operators(session)
            for name, kind in sorted(kinds(session).items()):
                if "--counts" in sys.argv and name in found["functions"]:
                    found["functions"][name]["counts"] = counts(session, name)
                elif WORD.match(name) and name not in OPERATOR_NAMES and (only is None or name in only):
                    found["functions"][name] = recorded_function(session, name, kind)
                    print(name, flush=True)
        RECORDED.mkdir(exist_ok=True)
        path.write_text(json.dumps(found, indent=0, sort_keys=True) + "\n")
    every = [json.loads(path.read_text()) for path in sorted(RECORDED.glob("functions-*.json"))]
    STORED.write_text(json.dumps(merged(every), indent=0, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
