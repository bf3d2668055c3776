"""SQL as normalised text, and the parts of a query that determine its state: groups, aggregates, joins, unions.

The texts are stored with checkpoints. They are made from tokens by the rules of this file alone, so that they do not
change with the release of a parser. A change of these rules needs a new version of the fingerprints.
"""

from __future__ import annotations

import re

from odradek.conventions.dataclass import dataclass

TOKEN = re.compile(
    r"""(?P<skipped>\s+|--[^\n]*|/\*.*?\*/)
    |(?P<quoted>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")
    |`(?P<name>(?:[^`]|``)*)`
    |(?P<word>\w+)
    |(?P<operator><=>|<=|>=|<>|!=|==|\|\||::|->|=>|.)""",
    re.DOTALL | re.VERBOSE,
)
SAME = {"!=": "<>", "==": "="}
FUNCTIONS = frozenset(
    """
    any any_value approx_count_distinct approx_percentile approx_top_k approx_top_k_accumulate approx_top_k_combine
    array_agg avg bit_and bit_or bit_xor bitmap_and_agg bitmap_construct_agg bitmap_or_agg bool_and bool_or collect_list
    collect_set collect_union corr count count_if count_min_sketch covar_pop covar_samp every first first_value grouping
    grouping_id histogram_numeric hll_sketch_agg hll_union_agg kll_merge_agg_bigint kll_merge_agg_double
    kll_merge_agg_float kll_sketch_agg_bigint kll_sketch_agg_double kll_sketch_agg_float kurtosis last last_value
    listagg max max_by mean measure median min min_by mode percentile percentile_approx percentile_cont percentile_disc
    regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy schema_of_variant_agg
    skewness some std stddev stddev_pop stddev_samp string_agg sum theta_intersection_agg theta_sketch_agg
    theta_union_agg try_avg try_sum tuple_intersection_agg_double tuple_intersection_agg_integer tuple_sketch_agg_double
    tuple_sketch_agg_integer tuple_union_agg_double tuple_union_agg_integer var_pop var_samp variance vector_avg
    vector_sum
    """.split()  # noqa: SIM905 - a list would have a line for each name
)
ENDS = frozenset(  # of a clause
    """
    where group having order sort cluster distribute limit offset union intersect except minus window qualify lateral
    select from
    """.split()  # noqa: SIM905 - a list would have a line for each name
)
BARE_CALLS = frozenset(("current_date", "current_timestamp", "current_time", "localtimestamp"))
MODIFIERS = frozenset(("left", "right", "full", "inner", "cross", "outer", "semi", "anti", "natural"))


def tokens_of(text: str) -> list[str]:
    """The tokens of SQL: words in lower case, without comments and without needless quotes."""
    found = []
    for match in TOKEN.finditer(text):
        if match["word"] is not None:
            found.append(match["word"].lower())
        elif match["name"] is not None:
            name = match["name"].lower()
            found.append(name if re.fullmatch(r"\w+", name) else f"`{name}`")
        elif match["skipped"] is None:
            found.append(SAME.get(match[0], match[0]))
    return found


def text_of(tokens: list[str]) -> str:
    """The tokens with single spaces, and none around parentheses, commas and points."""
    text = ""
    for before, token in zip(["", *tokens], tokens, strict=False):
        is_close = token in {")", ",", ".", "(", "[", "]"} or before in {"", "(", ".", "["}
        text += token if is_close else f" {token}"
    return text


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a function in SQL, the position of its name (from 1) and the texts of its arguments."""

    name: str
    line: int
    column: int
    arguments: tuple[str, ...] = ()


def calls_in(text: str) -> list[Call]:
    """The calls of functions; `current_timestamp` and the like are calls without parentheses."""
    found = [match for match in TOKEN.finditer(text) if match["skipped"] is None]
    calls = []
    for at, match in enumerate(found):
        after = [each[0] for each in found[at + 1 : at + 2]]
        before = found[at - 1][0] if at else ""
        name = (match["word"] or match["name"] or "").lower()
        is_qualified = before == "." and (at < 2 or found[at - 2][0].lower() != "builtin")
        if name and not is_qualified and (after == ["("] or (match["word"] and name in BARE_CALLS)):
            line_start = text.rfind("\n", 0, match.start()) + 1
            line, column = text.count("\n", 0, match.start()) + 1, match.start() - line_start + 1
            arguments = arguments_in([each[0] for each in found[at + 1 :]]) if after == ["("] else ()
            calls.append(Call(name, line, column, arguments))
    return calls


def arguments_in(tokens: list[str]) -> tuple[str, ...]:
    """The texts of the arguments in the parentheses with which these tokens begin."""
    found: list[list[str]] = [[]]
    depth = 0
    for token in tokens[: closing(tokens, 0)]:
        if token == "," and depth == 1:
            found.append([])
        elif depth:
            found[-1].append(token)
        depth += (token in "([") - (token in ")]")
    return tuple(map(text_of, found)) if found != [[]] else ()


def normalised(text: str) -> str:
    return text_of(tokens_of(text))


def state_parts(text: str) -> list[str]:
    """The parts of a query that determine its state, in the order of the text."""
    tokens = tokens_of(text)
    found = []
    for at, token in enumerate(tokens):
        after = tokens[at + 1] if at + 1 < len(tokens) else ""
        before = tokens[at - 1] if at else ""
        if token == "group" and after == "by":
            found.append(tokens[at : end_of(tokens, at + 1, ENDS)])
        elif token == "distinct" and before == "select":
            found.append([token])
        elif token == "union":
            found.append([token, after] if after == "all" else [token])
        elif token == "join":
            found.append(tokens[start_of(tokens, at) : end_of(tokens, at + 1, ENDS | MODIFIERS | {"join", ","})])
        elif token in FUNCTIONS and after == "(" and before != ".":
            found.append(tokens[at : closing(tokens, at + 1) + 1])
    return list(map(text_of, found))


def start_of(tokens: list[str], at: int) -> int:
    while at and tokens[at - 1] in MODIFIERS:
        at -= 1
    return at


def end_of(tokens: list[str], at: int, ends: frozenset[str]) -> int:
    """The index of the next of these tokens outside parentheses, or of the parenthesis that encloses them."""
    depth = 0
    for index in range(at, len(tokens)):
        token = tokens[index]
        if depth == 0 and (token == ")" or token in ends):
            return index
        depth += (token == "(") - (token == ")")
    return len(tokens)


def closing(tokens: list[str], at: int) -> int:
    depth = 0
    for index in range(at, len(tokens)):
        depth += (tokens[index] == "(") - (tokens[index] == ")")
        if depth == 0:
            return index
    return len(tokens) - 1
