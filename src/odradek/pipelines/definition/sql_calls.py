"""Finds calls of functions that Spark does not have, or that are given the wrong number of arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.pipelines.definition.nearest import nearest
from odradek.pipelines.definition.spark_functions import ANY_NUMBER
from odradek.pipelines.definition.sql_findings import Finding
from odradek.pipelines.definition.sql_text import place_in
from odradek.pipelines.definition.sql_written import is_star, name_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sqlglot import exp

    from odradek.pipelines.definition.spark_functions import Functions

# Their first argument may be a unit: date_diff(DAY, a, b).
WITH_UNIT = frozenset({"date_add", "dateadd", "date_diff", "datediff", "timestampadd", "timestampdiff"})

IN_PAIRS = frozenset({"map", "named_struct"})


def arguments_of(call: exp.Expr) -> list[exp.Expr]:
    """The arguments of a call, without DISTINCT."""
    from sqlglot import exp  # noqa: PLC0415 - parsed already, so imported already

    found: list[exp.Expr] = call.expressions
    return found[0].expressions if len(found) == 1 and isinstance(found[0], exp.Distinct) else found


def is_qualified(call: exp.Expr) -> bool:
    """Whether it is a function of another catalog: `catalog.function(…)`."""
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    return isinstance(call.parent, exp.Dot) and call.parent.expression is call


def wrong_calls(tree: exp.Expr, functions: Functions) -> Iterator[Finding]:
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    for call in tree.find_all(exp.Anonymous):
        if isinstance(call.parent, exp.Table) or is_qualified(call) or call.find_ancestor(exp.Hint) is not None:
            continue  # a table function, a function of another catalog, or a hint
        name = name_of(call)
        if not functions.is_known(name):
            close = similar_name(name, functions.names)
            hint = f"did you mean {close}?" if close else "use one of Spark's functions, or declare it in functions:"
            yield Finding(f"there is no function '{name}'", hint, *place_in(call))
        elif has_wrong_count(call, name, functions):
            given = len(arguments_of(call))
            yield Finding(
                f"{name} is given {given} argument{'' if given == 1 else 's'}",
                "it takes pairs" if name in IN_PAIRS else f"it takes {counts_text(functions.counts(name) or [])}",
                *place_in(call),
            )


def similar_name(name: str, known: Sequence[str]) -> str | None:
    """The function that was probably meant: one of the same letters, or the most similar one."""
    swapped = [each for each in known if sorted(each) == sorted(name)]
    return swapped[0] if swapped else nearest(name, known)


def has_wrong_count(call: exp.Expr, name: str, functions: Functions) -> bool:
    from sqlglot import exp  # noqa: PLC0415 - takes long to import

    arguments = arguments_of(call)
    if any(isinstance(each, exp.Kwarg | exp.PropertyEQ) or is_star(each) for each in arguments):
        return False
    if (name in WITH_UNIT and len(arguments) == 3) or isinstance(call.parent, exp.WithinGroup):
        return False
    if name in IN_PAIRS and len(arguments) % 2 and functions.is_spark(name):
        return True
    return not functions.takes(name, len(arguments))


def counts_text(counts: Sequence[int]) -> str:
    return f"{counts[0]} or more" if counts[-1] == ANY_NUMBER else " or ".join(map(str, counts))
