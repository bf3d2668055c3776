"""Whether rows keep the order in which they arrived, by which `deduplicate` and a table without `order_by` choose.

Rows that derive from one record keep its offset. Other rows keep their order as long as each step handles them one by
one: a join, a union, a deduplication or a new partitioning may put the rows of a batch in any order. Rows with an
offset can be sorted by it, until a step returns them without it.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING

from odradek.pipelines.definition.columns import lookup
from odradek.pipelines.definition.model import FileOrigin, LakehouseTarget, Sink, TopicOrigin, TopicTarget, place_of
from odradek.pipelines.definition.operations import Deduplication, Join, KeyedState, PythonFunction, Sql, StreamJoin
from odradek.pipelines.definition.sql_text import SqlError, parse_query
from odradek.pipelines.definition.sql_written import is_star
from odradek.pipelines.planning.kept_rows import key_of, warn_of_ties
from odradek.pipelines.planning.origins import kept_origins
from odradek.pipelines.planning.queries import own_queries, query_of
from odradek.pipelines.planning.query_rows import has_own_literals
from odradek.pipelines.planning.query_scope import alias_of
from odradek.pipelines.planning.state import State, state_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from sqlglot import exp

    from odradek.pipelines.definition.graph import Graph
    from odradek.pipelines.definition.model import Changes, Pipeline, Source, Step, View
    from odradek.pipelines.definition.places import Problems
    from odradek.pipelines.planning.streams import Streams

ONE_FILE = "read one file after the other with options: {maxFilesPerTrigger: 1} of the source"
DIVIDING = ("repartition", "rebalance")  # hints that divide the rows of a batch into other partitions


class Arrival(Enum):
    """What is known of the order of rows."""

    RECORD = auto()  # each row has the offset of its record, and rows are in their order
    MIXED = auto()  # each row has the offset of its record, and those of a batch are in any order
    ORDERED = auto()  # rows are in the order of their arrival
    LOST = auto()


WITH_RECORDS = frozenset((Arrival.RECORD, Arrival.MIXED))


def check_arrival(pipeline: Pipeline, end: Sink | View, graph: Graph, streams: Streams, problems: Problems) -> None:
    """Checks that a table or view without `order_by` reads rows whose order of arrival is known."""
    key, order_by = key_of(end)
    name = first_without_order(pipeline, end.input, key, graph, streams)
    if name is None:
        return
    if order_by is not None:
        warn_of_ties(end, problems)
        return
    is_source = name in {each.name for each in pipeline.sources}
    is_table = isinstance(end, Sink) and isinstance(end.target, LakehouseTarget)
    hint = "use changes: {key, sequence}" if is_table else "add order_by: a column that says which row is newer"
    problems.error(
        place_of(end, "key"),
        f"'{end.name}' keeps the row of each {', '.join(key)} that arrived last, and the rows of "
        f"{unordered(name, is_source=is_source)} are not in the order of their arrival",
        f"{hint}{f', or {ONE_FILE}' if is_source else ''}",
    )


def check_deduplications(pipeline: Pipeline, graph: Graph, streams: Streams, problems: Problems) -> None:
    for step in pipeline.steps:
        if isinstance(step.operation, Deduplication) and step.name in streams.names:
            check_first_rows(pipeline, step, step.operation, graph, streams, problems)


def check_first_rows(
    pipeline: Pipeline, step: Step, operation: Deduplication, graph: Graph, streams: Streams, problems: Problems
) -> None:
    """Checks that a deduplication reads rows whose order of arrival is known, unless those of a key are the same."""
    columns = lookup(streams.columns, operation.input)
    if columns is not None and is_part(columns.names, {name.lower() for name in operation.key}):
        return
    name = first_without_order(pipeline, operation.input, operation.key, graph, streams)
    if name is None:
        return
    is_source = name in {each.name for each in pipeline.sources}
    hint = f"{ONE_FILE}, or use" if is_source else f"deduplicate before '{name}', or use"
    problems.error(
        place_of(step, "deduplicate", "key"),
        f"step '{step.name}' keeps the row of each {', '.join(operation.key)} that arrived first, and the rows of "
        f"{unordered(name, is_source=is_source)} are not in the order of their arrival",
        f"{hint} a table or view with key and order_by",
    )


def check_equal_changes(
    pipeline: Pipeline, end: Sink | View, changes: Changes, graph: Graph, streams: Streams, problems: Problems
) -> None:
    """Warns of changes that arrive in no order: of those with equal key and sequence any may stay. Of groups nothing is
    said: their columns tell them apart."""
    name = first_without_order(pipeline, end.input, (*changes.key, changes.sequence), graph, streams)
    lost = next((step for step in pipeline.steps if step.name == name), None)
    if name is None or (lost is not None and State.AGGREGATION in state_of(lost, streams.names)):
        return
    is_source = name in {each.name for each in pipeline.sources}
    problems.warning(
        place_of(end, "changes", "sequence"),
        f"of changes with equal {', '.join((*changes.key, changes.sequence))} '{end.name}' keeps the one that arrived "
        f"last, and the rows of {unordered(name, is_source=is_source)} are not in the order of their arrival: the one "
        "that stays depends on the batches",
        "use a sequence that differs between the changes of a key",
    )


def check_tombstones(pipeline: Pipeline, sink: Sink, graph: Graph, streams: Streams, problems: Problems) -> None:
    """Warns of a topic with tombstones whose rows are written in no order: of a key any record may be the last. Of
    groups nothing is said: a batch has one row of each."""
    target = sink.target
    if not isinstance(target, TopicTarget) or target.deletes is None:
        return
    if are_groups(sink.input, {each.name: each for each in pipeline.steps}, graph, streams):
        return
    name = first_without_order(pipeline, sink.input, (target.key or "",), graph, streams, is_sorted_later=False)
    if name is None:
        return
    is_source = name in {each.name for each in pipeline.sources}
    problems.warning(
        place_of(sink, "deletes"),
        f"sink '{sink.name}' writes tombstones, and the rows of {unordered(name, is_source=is_source)} are not in "
        "the order of their arrival: whether a record or the tombstone of its key is written last depends on the "
        "batches",
        "apply the deletions to a table or view: changes: {key, sequence, deletes}, or write records and tombstones by "
        "one SELECT of the source",
    )


def are_groups(name: str, steps: Mapping[str, Step], graph: Graph, streams: Streams) -> bool:
    """Whether all rows of a source or step are computed from groups of an aggregation."""
    if name in steps and State.AGGREGATION in state_of(steps[name], streams.names):
        return True
    read = [each for each in graph.inputs.get(name, ()) if each in streams.names]
    return bool(read) and all(are_groups(each, steps, graph, streams) for each in read)


def unordered(name: str, *, is_source: bool) -> str:
    return f"source '{name}', which reads files," if is_source else f"step '{name}'"


def first_without_order(
    pipeline: Pipeline,
    read: str,
    key: Collection[str],
    graph: Graph,
    streams: Streams,
    *,
    is_sorted_later: bool = True,
) -> str | None:
    """The first source or step before these rows that loses the order of arrival of rows with equal keys, if any; of
    rows that are not sorted later also the first that mixes them."""
    found: dict[str, Arrival] = {}  # by lower-case name
    keys = keys_of_steps(pipeline, read, key, graph)
    sources = {each.name: each for each in pipeline.sources}
    steps = {each.name: each for each in pipeline.steps}
    for name in graph.upstream(read):
        if name not in streams.names:
            arrival = Arrival.ORDERED  # of a table, whose rows a join adds
        elif name in sources:
            arrival = source_arrival(sources[name])
        else:
            arrival = arrival_of(steps[name], found, keys[name], streams)
        found[name.lower()] = arrival
        if arrival is Arrival.LOST:
            return name
    mixed = [name for name in graph.upstream(read) if found[name.lower()] is Arrival.MIXED]
    return mixed[0] if found[read.lower()] is Arrival.MIXED and not is_sorted_later else None


def source_arrival(source: Source) -> Arrival:
    if isinstance(source.origin, TopicOrigin):
        return Arrival.RECORD
    is_ordered = isinstance(source.origin, FileOrigin) and source.origin.has_ordered_files
    return Arrival.ORDERED if is_ordered else Arrival.LOST


def arrival_of(step: Step, found: Mapping[str, Arrival], key: Collection[str], streams: Streams) -> Arrival:
    """The order of a step's rows; none of its inputs has lost it."""
    operation = step.operation
    if State.AGGREGATION in state_of(step, streams.names):
        return Arrival.LOST
    if isinstance(operation, Sql):
        return query_arrival(operation, found, key, streams)
    if isinstance(operation, Join):
        return Arrival.MIXED if found[operation.input.lower()] in WITH_RECORDS else Arrival.LOST
    if isinstance(operation, Deduplication):
        before = found[operation.input.lower()]
        if operation.within is None and is_part(operation.key, key):
            return before
        return Arrival.MIXED if before in WITH_RECORDS else Arrival.LOST
    if isinstance(operation, KeyedState):  # rows are in order for each of its keys
        return Arrival.ORDERED if is_part(operation.key, key) else Arrival.LOST
    if isinstance(operation, PythonFunction):
        is_mixed = len(operation.inputs) > 1 or operation.keeps_state or operation.mixes_rows
        was_mixed = any(found.get(each.lower()) is Arrival.MIXED for each in operation.inputs)
        return Arrival.LOST if is_mixed or was_mixed else Arrival.ORDERED
    return Arrival.LOST if isinstance(operation, StreamJoin) else Arrival.ORDERED


def is_part(names: Collection[str], key: Collection[str]) -> bool:
    return {name.lower() for name in names}.issubset(key)


def keys_of_steps(pipeline: Pipeline, read: str, key: Collection[str], graph: Graph) -> dict[str, frozenset[str]]:
    """The columns of each step before these rows that become columns of their key, in lower case."""
    steps = {each.name: each for each in pipeline.steps}
    keys = {read: frozenset(name.lower() for name in key)}
    for name in reversed(graph.upstream(read)):
        query = query_of(steps[name]) if name in steps else None
        before = keys[name] if query is None else selected_columns(query, keys[name])
        for each in graph.inputs.get(name, ()):
            keys[each] = keys.get(each, before) & before
    return keys


def selected_columns(query: exp.Expr, names: frozenset[str]) -> frozenset[str]:
    """The columns of a query's table that it selects under these names, as far as they are known."""
    from sqlglot import exp  # noqa: PLC0415 - parsed already

    selects = list(query.find_all(exp.Select))
    if len(selects) != 1:
        made = [each for each in query.find_all(exp.Alias) if each.this.name.lower() != each.alias.lower()]
        return names - {each.alias.lower() for each in made}
    tables = {alias_of(each) for each in query.find_all(exp.Table)}
    stars = [each for each in selects[0].expressions if is_star(each)]
    items = {alias_of(each): each.unalias() for each in selects[0].expressions if each not in stars}
    columns = {name: item for name, item in items.items() if name in names and isinstance(item, exp.Column)}
    kept = {each.name.lower() for each in columns.values() if not each.table or each.table.lower() in tables}
    return frozenset(kept) | (names - set(items) if stars else frozenset())


def query_arrival(operation: Sql, found: Mapping[str, Arrival], key: Collection[str], streams: Streams) -> Arrival:
    from sqlglot import exp  # noqa: PLC0415 - parsed already

    try:
        query = parse_query(operation.text)
    except SqlError:
        return Arrival.ORDERED
    read = {each.name.lower() for each in query.find_all(exp.Table)}
    is_mixed = mixes_rows(query, key, streams) or any(found.get(each) is Arrival.MIXED for each in read)
    with_records = [name for name, each in found.items() if each in WITH_RECORDS]
    if kept_origins(operation.text, with_records) is not None:
        return Arrival.MIXED if is_mixed else Arrival.RECORD
    return Arrival.LOST if is_mixed else Arrival.ORDERED


def mixes_rows(query: exp.Expr, key: Collection[str], streams: Streams) -> bool:
    """Whether a query has a join, repartitions its rows, or has a UNION whose queries may have rows of the same key."""
    from sqlglot import exp  # noqa: PLC0415 - parsed already

    subqueries = [each for each in query.find_all(exp.In, exp.Exists) if each.find(exp.Select) is not None]
    if subqueries or query.find(exp.Join) is not None:
        return True
    if any(word in each.sql(dialect="spark").lower() for each in query.find_all(exp.Hint) for word in DIVIDING):
        return True
    scalars = [each for select in query.find_all(exp.Select) for each in own_queries(select)]
    if any(is_correlated(each, streams) for each in scalars):
        return True
    return any(not tells_queries_apart(each, key) for each in query.find_all(exp.Union))


def is_correlated(subquery: exp.Expr, streams: Streams) -> bool:
    """Whether a subquery in an expression names a column of the query around it, so that Spark runs it as a join."""
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    tables = list(subquery.find_all(exp.Table))
    inner = {alias_of(each) for each in (*tables, *subquery.find_all(exp.Subquery, exp.CTE))}
    outer = {alias_of(each) for each in subquery.root().find_all(exp.Table)} - inner
    known = [lookup(streams.columns, each.name) for each in tables]
    aliases = {each.alias.lower() for each in subquery.find_all(exp.Alias)}
    for names in ([part.name.lower() for part in each.parts] for each in subquery.find_all(exp.Column)):
        is_qualified = len(names) > 1 and names[0] in inner | outer
        is_inner = names[0] in aliases or any(each is None or names[0] in each for each in known)
        if (is_qualified and names[0] in outer) or not (is_qualified or is_inner):
            return True
    return False


def tells_queries_apart(union: exp.Union, key: Collection[str]) -> bool:
    columns = [each.alias_or_name.lower() for each in union.selects]
    return any(name in key and has_own_literals(union, at) for at, name in enumerate(columns))
