"""Spark's functions: their kinds, which of them depend on more than the rows, read a clock, or fail for a row."""

from __future__ import annotations

import functools
import json
from enum import StrEnum
from pathlib import Path


class Kind(StrEnum):
    """Where Spark takes a function."""

    SCALAR = "scalar"
    AGGREGATE = "aggregate"
    GENERATOR = "generator"
    OVER = "over"  # with OVER only
    TABLE = "table"  # in FROM only


@functools.cache
def kinds() -> dict[str, Kind]:
    """The kinds of Spark's functions, of `SHOW FUNCTIONS` and of its grammar."""
    recorded = json.loads(Path(__file__).with_name("spark_functions.json").read_text(encoding="utf-8"))
    return {name: Kind(kind) for kind, names in recorded.items() for name in names}


def kind_of(name: str) -> Kind | None:
    """The kind of a function; None if Spark has none of this name."""
    return kinds().get(name.lower())


BY_VALUE = "max_by(x, at) or min_by(x, at)"
SORTED = "sort_array(collect_list(x))"
EXACT = "an exact aggregate: count(DISTINCT x), percentile(x, 0.5), collect_set(x)"
HASHED = "xxhash64 of columns that make the row unique"
FROM_ROWS = "a column of the row"
# Functions whose result depends on more than the rows: on their order, on the split into batches, or on chance.
UNDETERMINED: dict[str, str] = {
    **dict.fromkeys(("first", "first_value", "last", "last_value", "any_value", "nth_value"), BY_VALUE),
    **dict.fromkeys(("collect_list", "array_agg", "collect_set", "collect_union"), SORTED),
    **dict.fromkeys(("listagg", "string_agg"), "array_join(sort_array(collect_list(x)), ',')"),
    "mode": "count each value: by: [x], then max_by(x, n)",
    **dict.fromkeys(("percentile_approx", "approx_percentile", "histogram_numeric", "count_min_sketch"), EXACT),
    **dict.fromkeys(("rand", "random", "randn", "randstr", "uniform", "uuid", "shuffle"), HASHED),
    **dict.fromkeys(("monotonically_increasing_id", "spark_partition_id"), "the columns _partition and _offset"),
    **dict.fromkeys(("input_file_name", "input_file_block_start", "input_file_block_length"), FROM_ROWS),
    **dict.fromkeys(("java_method", "reflect", "try_reflect", "aes_encrypt"), "a Python step"),
    **dict.fromkeys(("version", "current_user", "session_user", "user"), FROM_ROWS),
}
SKETCHES = ("approx_top_k", "hll_", "kll_", "theta_", "tuple_")  # prefixes of aggregates that depend on the split
# The functions that make a list of rows independent of its order.
ORDERLESS_PARENTS = frozenset(
    ("size", "sort_array", "array_contains", "array_size", "cardinality", "array_max", "array_min", "exists", "forall")
)
CLOCK = frozenset(
    ("now", "current_date", "curdate", "current_timestamp", "current_time", "localtimestamp", "localtime")
)
# What can fail for a row, by function or operator, and what gives null instead.
MAY_FAIL: dict[str, str] = {
    "[]": "get", "/": "try_divide", "%": "try_mod", "div": "try_divide", "mod": "try_mod", "pmod": "try_mod",
    "+": "try_add", "-": "try_subtract", "*": "try_multiply", "elt": "get(array(…), n - 1)",
    "make_date": "try_to_date", "raise_error": "an expectation", "assert_true": "an expectation",
    **dict.fromkeys(("to_unix_timestamp", "unix_timestamp"), "try_to_timestamp"),
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint", "float", "double", "decimal"), "try_cast"),
    **dict.fromkeys(("boolean", "date", "timestamp"), "try_cast"),
    **{
        name: f"try_{name}"
        for name in (
            "cast", "element_at", "to_timestamp", "to_date", "to_time", "to_number", "to_binary", "make_timestamp",
            "make_interval", "parse_json", "parse_url", "url_decode", "variant_get", "aes_decrypt", "validate_utf8",
            "sum", "avg",
        )
    },
}  # fmt: skip
OPERATORS = {  # names in MAY_FAIL of sqlglot's nodes
    "Bracket": "[]", "Cast": "cast", "Div": "/", "IntDiv": "div", "Mod": "%", "Add": "+", "Sub": "-", "Neg": "-",
    "Mul": "*",
}  # fmt: skip


def undetermined(name: str, parent: str = "") -> str | None:
    """What to write instead of a call, as an argument of `parent`, whose result the rows do not determine."""
    if name in {"collect_list", "collect_set", "array_agg"} and parent in ORDERLESS_PARENTS:
        return None
    is_sketch = name.startswith(SKETCHES) and kind_of(name) is Kind.AGGREGATE
    return EXACT if is_sketch else UNDETERMINED.get(name)


def reads_clock(name: str, arguments: int) -> bool:
    """Whether the result of a call depends on the time at which it is computed."""
    return name in CLOCK or (name == "unix_timestamp" and arguments == 0)
