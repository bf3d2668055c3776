"""What a query over streams is: row by row, groups of one stream, or a join of two streams."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.conventions.dataclass import dataclass
from odradek.pipelines.definition.column_types import Map
from odradek.pipelines.sql.functions import Kind, kind_of
from odradek.pipelines.sql.joins import Pairs, pairs_of
from odradek.pipelines.sql.query import Join, Query, Reference, is_within
from odradek.pipelines.sql.results import certain_type
from odradek.pipelines.sql.splicing import with_paths
from odradek.pipelines.sql.text import WINDOWS, Span, exp, tables_of, tokens_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from odradek.pipelines.sql.query import Call, Item, WindowCall

OF_OTHER_ROWS = (
    "views: {latest: {from: …, key: [k], order_by: [at]}}; for the first n: aggregate: {rows: "
    '"slice(sort_array(collect_list(struct(at, …)), false), 1, n)"}, by: [k]; for a total: aggregate: {…}, by: [k], '
    "window: {…}; for rows that need those before them: state: {key: [k], processor: package.module:Class}"
)
WHEN_QUERIED = "the clause where you query the table or view; a sample: WHERE pmod(xxhash64(id), 10) = 0"
EACH_SET = "an `aggregate` for each set of columns"
LATEST_OF_TABLE = "a join with a static table of a database, in which another pipeline keeps the latest row of each key"
# The clauses that streams do not have, and what to write instead; the first one that a query has is named.
ADVICE = {
    **dict.fromkeys(("QUALIFY", "OVER", "WINDOW"), OF_OTHER_ROWS),
    "DISTINCT ON": "a table or view with key and order_by: it has the latest row of each key",
    "DISTINCT": "deduplicate: {key: [all columns]}",
    "ROLLUP": EACH_SET, "CUBE": EACH_SET, "GROUPING SETS": EACH_SET,
    "PIVOT": "aggregate: {a: \"sum(x) filter (where k = 'a')\"}, a column for each value",
    "NATURAL JOIN": "JOIN … USING (k)",
    "ASOF JOIN": LATEST_OF_TABLE, "FOR SYSTEM_TIME AS OF": LATEST_OF_TABLE,
    "UNNEST": "LATERAL VIEW explode(tags) t AS tag",
    "LATERAL (SELECT …)": "LATERAL VIEW explode(…)",
    "WITHIN GROUP": "percentile(x, 0.5), or array_join(sort_array(collect_list(x)), ',')",
    "IGNORE NULLS": "max_by(x, at) filter (where x is not null)",
    "parentheses around a join": "the join without parentheses, or in FROM (SELECT …)",
    "a table function": "LATERAL VIEW explode(…)",
    "names for the columns of a table": "AS in SELECT for each column",
    **dict.fromkeys(
        ("ORDER BY", "SORT BY", "CLUSTER BY", "DISTRIBUTE BY", "LIMIT", "OFFSET", "TABLESAMPLE"), WHEN_QUERIED
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Generator:
    """A generator in SELECT or in a LATERAL VIEW, and the columns that it makes."""

    call: Call
    names: tuple[str, ...]
    alias: str | None
    is_item: bool

    @property
    def is_plain(self) -> bool:
        """Whether its rows are an array made of its arguments: those of `explode`, `posexplode` and a whole `stack`."""
        columns, values = len(self.names), len(self.call.arguments)
        if self.call.name == "stack":
            count = self.call.tree.expressions[0].name if values else ""
            return columns > 0 and values > 1 and count == str((values - 1) / columns).removesuffix(".0")
        return values == 1 and (self.call.name, columns) in {("explode", 1), ("explode", 2), ("posexplode", 2)}


@dataclass(frozen=True, slots=True)
class Rows:
    """Row by row: projections, filters and generators over streams, and joins with static tables."""

    streams: tuple[str, ...]
    tables: tuple[str, ...]  # the static ones, those of subqueries included
    kept_tables: tuple[str, ...]  # those of `tables` whose rows a join keeps by their match in the stream
    is_plain: bool  # one SELECT of one stream with one plain generator at most, and no subquery


@dataclass(frozen=True, slots=True)
class GroupKey:
    """An expression of GROUP BY. The outputs are the names under which it is selected as it is."""

    text: str
    column: str | None  # the column that it is
    outputs: tuple[str, ...]  # of a window those of its start and its end
    ends: tuple[str, ...]  # those of a window's end
    is_window: bool = False


@dataclass(frozen=True, slots=True)
class Groups:
    """Groups of the rows of one stream."""

    stream: str
    tables: tuple[str, ...]  # the static ones of subqueries
    keys: tuple[GroupKey, ...]
    window: WindowCall | None
    having: Span | None
    aggregates: tuple[Call, ...]


@dataclass(frozen=True, slots=True)
class Refused:
    """A clause that streams do not have, and what to write instead."""

    clause: str
    span: Span
    advice: str


Shape = Rows | Groups | Pairs | Refused


def shape_of(query: Query, times: Mapping[str, str | None]) -> Shape:
    """The shape of a query over at least one stream; `times` has the event time of each, by name in lower case."""
    return _Reading(query, times).shape()


class _Reading:
    """Finds the shape of one SELECT."""

    def __init__(self, query: Query, times: Mapping[str, str | None]) -> None:
        self._query = query
        self._times = times
        self._streams = [each for each in query.tables if self._is_stream(each.table)]
        self._read_by_subqueries = [
            (tree, query.part.renamed.get(name.lower(), name)) for tree in query.subqueries for name in tables_of(tree)
        ]
        named = [*(each.table for each in query.tables), *(name for _, name in self._read_by_subqueries)]
        self._tables = _unique(name for name in named if not self._is_stream(name))
        own = [each for each in query.calls if each.tree.find_ancestor(exp.Query) is query.tree]
        self._aggregates = tuple(each for each in own if kind_of(each.name) is Kind.AGGREGATE)
        self._row_calls = [each for each in own if kind_of(each.name) is Kind.GENERATOR or each.name in WINDOWS]

    def shape(self) -> Shape:
        subqueries = [(tree, name) for tree, name in self._read_by_subqueries if self._is_stream(name)]
        for clause in (*ADVICE, *sorted(self._query.clauses)):
            if clause in self._query.clauses:
                return Refused(clause, _span_of_word(self._query, clause.split(" ")[0]), ADVICE.get(clause, ""))
        if subqueries:
            return self._refused_subquery(*subqueries[0])
        if self._query.tree.args.get("group") or self._aggregates or self._query.having:
            return self._groups()
        return self._rows() if len(self._streams) == 1 else self._pairs()

    def _is_stream(self, table: str) -> bool:
        return table.lower() in self._times

    def _refused_subquery(self, tree: exp.Query, stream: str) -> Refused:
        above = tree.find_ancestor(exp.In, exp.Exists, exp.Select)
        kind = "IN " if isinstance(above, exp.In) else "EXISTS " if isinstance(above, exp.Exists) else ""
        how = ", how: left" if above is not None and isinstance(above.parent, exp.Not) else ""
        behind = "WHERE … IS NULL" if how else "`deduplicate`"
        value = "" if kind else "a step for its value, and "
        advice = f"{value}join: {{stream: {stream}, on: [k], within: 1 hour{how}}}, and {behind} behind it"
        return Refused(f"{kind}(SELECT …) of the stream '{stream}'", self._query.span(tree), advice)

    def _rows(self) -> Rows:
        query, stream = self._query, self._streams[0]
        kept, is_behind = [], False
        for number, table in enumerate(query.tables):
            others = [each.table for each in query.tables[:number]] if table is stream else [table.table]
            losing = {Join.LEFT, Join.SEMI, Join.ANTI, Join.FULL} if table is stream else {Join.RIGHT, Join.FULL}
            is_behind |= table is stream
            if is_behind and table.join in losing:
                kept += others
        is_one = len(query.tables) == 1 and not query.subqueries and not query.tree.args.get("hint")
        has_windows = any(each.name in WINDOWS for each in self._row_calls)
        is_plain = is_one and not has_windows and has_plain_generators(query)
        return Rows((stream.table,), self._tables, _unique(kept), is_plain)

    def _pairs(self) -> Pairs | Refused:
        query = self._query
        if len(query.tables) > 2:
            advice = "the join of two in FROM (SELECT …), and the next one behind it"
            return Refused("a join of two streams with another table", query.tables[2].span, advice)
        left, right = (self._times[each.table.lower()] for each in query.tables)
        return pairs_of(query, (left, right), self._tables)

    def _groups(self) -> Groups | Refused:
        query = self._query
        if len(query.tables) > 1:
            span = _span_of_word(query, "GROUP" if query.group else "SELECT")
            return Refused("a join and groups in one SELECT", span, "… FROM (SELECT … FROM a JOIN b …) GROUP BY …")
        for call in self._aggregates:
            columns = ", ".join(query.text(each) for each in call.arguments)
            if call.is_distinct and (call.name != "count" or len(call.arguments) > 1 or columns.endswith("*")):
                advice = f"count(DISTINCT struct({columns})), or `deduplicate` before the step"
                return Refused(f"{call.name}(DISTINCT {columns})", call.span, advice)
        within = [
            each
            for each in self._row_calls
            if each.name in WINDOWS and any(is_within(each.span, key.span) for key in query.group)
        ]
        if within and query.window is None:
            text = query.text(within[-1].span)
            return Refused(f"{text} beside another window, or in an expression", within[-1].span, f"GROUP BY {text}")
        own = query.tables[0]
        for each in query.references(query.having) if query.having else ():
            known = query.columns[0]
            tree = None if each.item is None else each.item.tree
            is_own_name = isinstance(tree, exp.Column) and tree.name.lower() == each.parts[0].lower()
            if each.item is not None and known is not None and each.parts[0] in known and not is_own_name:
                advice = f"another alias, or in HAVING {query.text(each.item.span)} itself"
                return Refused(f"HAVING with '{each.parts[0]}', a column and an alias,", each.span, advice)
        keys = tuple(self._key(each) for each in query.group)
        return Groups(own.table, self._tables, keys, query.window, query.having, self._aggregates)

    def _key(self, key: Item) -> GroupKey:
        query, words = self._query, self._words(key.span)
        is_window = query.window is not None and key.span == query.window.span
        outputs: list[str] = []
        ends: list[str] = []
        references = query.references(key.span)
        is_column = isinstance(key.tree.unnest(), exp.Column) and len(references[0].parts) == 1
        column = references[0].parts[0] if is_column else None
        for item in query.items:
            found = self._words(item.span)
            if item.star_of is not None:
                outputs += ["start", "end"] if is_window and item.star_of.lower() in WINDOWS else []
                outputs += [column] if column and item.star_of.lower() in {"", query.tables[0].alias.lower()} else []
                ends += ["end"] if "end" in outputs else []
            elif item.name and found == ((*words, ".", "start") if is_window else words):
                outputs.append(item.name)
            elif item.name and is_window and found == (*words, ".", "end"):
                outputs.append(item.name)
                ends.append(item.name)
        return GroupKey(query.text(key.span), column, _unique(outputs), _unique(ends), is_window)

    def _words(self, span: Span) -> tuple[str, ...]:
        """An expression without parentheses, in which each column has the name of its table: to compare expressions."""
        query = self._query

        def path(reference: Reference) -> str | None:
            if reference.table == "window" and query.window is not None:
                fields = [] if reference.parts[0].lower() in WINDOWS else [each.lower() for each in reference.parts]
                return ".".join((with_paths(query, query.window.span, path), *fields))
            return None if reference.table is None else ".".join((reference.table, *reference.parts))

        tokens = tokens_of(with_paths(query, span, path))
        kinds = {"L_PAREN", "R_PAREN"}
        return tuple(
            each.text if each.kind == "STRING" else each.text.lower() for each in tokens if each.kind not in kinds
        )


def _span_of_word(query: Query, word: str) -> Span:
    """The first token that begins with a word; that of FROM if there is none."""
    tokens = tokens_of(query.part.text)
    found = [each for start in (word, "FROM") for each in tokens if each.text.upper().startswith(start)]
    start = query.part.start
    return found[0].start + start, found[0].end + start


def _unique(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


def generators_of(query: Query) -> list[Generator]:
    """The generators that are items of SELECT or a LATERAL VIEW."""
    calls = {id(each.tree): each for each in query.calls if kind_of(each.name) is Kind.GENERATOR}
    made = [
        Generator(calls[id(item.tree)], item.names or _generated_names(query, calls[id(item.tree)]), None, is_item=True)
        for item in query.items
        if id(item.tree) in calls
    ]
    for view in query.laterals:
        call = calls.get(id(view.tree))
        if call is not None and not view.is_outer:
            made.append(Generator(call, view.columns or _generated_names(query, call), view.alias, is_item=False))
    return made


def has_plain_generators(query: Query) -> bool:
    """Whether there is no generator, or one that is plain."""
    calls = [each for each in query.calls if kind_of(each.name) is Kind.GENERATOR]
    made = generators_of(query)
    return len(calls) == len(made) == len(query.laterals) + sum(each.is_item for each in made) and (
        not made or (len(made) == 1 and made[0].is_plain)
    )


def _generated_names(query: Query, call: Call) -> tuple[str, ...]:
    """The names that Spark gives to columns without an alias."""
    if call.name == "explode" and call.tree.expressions:
        return ("key", "value") if isinstance(certain_type(query, call.tree.expressions[0]), Map) else ("col",)
    return ("pos", "col") if call.name == "posexplode" else ()
