"""Replaces names and calls in the user's own SQL at their positions; all other text reaches Spark as it was written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.pipelines.sql.query import Call, Query, Reference, is_within
from odradek.pipelines.sql.text import Span, named_tables, parse_any, table_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def spliced(text: str, within: Span, changes: Mapping[Span, str], start: int = 0) -> str:
    """The text of a span with some spans in it replaced. Spans count from `start`, the offset of the text.

    Of two spans, one of which contains the other, the outer one counts; its new text must have the change of the inner
    one.
    """
    made, position = [], within[0]
    for span in sorted((each for each in changes if is_within(each, within)), key=lambda each: (each[0], -each[1])):
        if span[0] >= position:
            made += [text[position - start : span[0] - start], changes[span]]
            position = span[1]
    return "".join((*made, text[position - start : within[1] - start]))


def with_paths(query: Query, within: Span, path_of: Callable[[Reference], str | None]) -> str:
    """The text of a span in which each column is replaced by its path; None leaves it as it is.

    An alias of an earlier item is replaced by the expression of the item: `n + 1 as m, m * 2` gives `(n + 1) * 2`.
    """

    def path(reference: Reference) -> str | None:
        if reference.item is None:
            return path_of(reference)
        fields = "".join(f".{quoted(each)}" for each in reference.parts[1:])
        return f"({with_paths(query, reference.item.span, path_of)}){fields}"

    changes = {each.span: path(each) for each in query.references(within)}
    known = {span: path for span, path in changes.items() if path is not None}
    return spliced(query.part.text, within, known, query.part.start)


def with_calls(query: Query, within: Span) -> str:
    """The text of a span in which calls are replaced by calls whose result depends on the rows alone.

    `count(DISTINCT x)` becomes a set, which a stream can keep, and ties of `max_by` and `min_by` are decided by the
    value. Where `within` is the condition of HAVING, aliases of SELECT are replaced by their expressions.
    """
    changes = {
        each.span: _rewritten(query, each)
        for each in query.calls
        if each.span != within and is_within(each.span, within) and _is_rewritten(each)
    }
    if query.having is not None and is_within(within, query.having):
        for each in query.references(within):
            if each.item is not None:
                fields = "".join(f".{quoted(part)}" for part in each.parts[1:])
                changes[each.span] = f"({with_calls(query, each.item.span)}){fields}"
    own = next((each for each in query.calls if each.span == within and _is_rewritten(each)), None)
    return spliced(query.part.text, within, changes, query.part.start) if own is None else _rewritten(query, own)


def with_tables(text: str, names: Mapping[str, str]) -> str:
    """A query in which the tables of these names (in lower case) are others, under the aliases that they had."""
    changes = {}
    for table in named_tables(parse_any(text)):
        new = names.get(table_name(table).lower())
        if new is not None:
            span = table.parts[0].meta["start"], table.parts[-1].meta["end"] + 1
            changes[span] = quoted(new) if table.alias else f"{quoted(new)} AS {quoted(table.parts[-1].name)}"
    return spliced(text, (0, len(text)), changes)


def _is_rewritten(call: Call) -> bool:
    if call.name in {"max_by", "min_by"}:
        return len(call.arguments) == 2
    return call.name == "count" and call.is_distinct and len(call.arguments) == 1


def _rewritten(query: Query, call: Call) -> str:
    first, *others = (with_calls(query, each) for each in call.arguments)
    condition = "" if call.filter is None else f" FILTER (WHERE {with_calls(query, call.filter)})"
    if call.name == "count":
        return f"bigint(size(array_distinct(collect_set({first}){condition})))"
    name = query.text(call.span).split("(")[0]
    return f"{name}({first}, if(({others[0]}) is null, null, struct({others[0]}, {first}))){condition}"
