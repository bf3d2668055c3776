"""Spark's functions and operators: which calls Spark refuses, and the types of the results of the others.

The table was recorded from Spark (by `tests/pipelines/analysis/record_functions.py`) for one and two arguments of the
types in `type_letters`. Anything else is unknown: no refusal, and no type.
"""

from __future__ import annotations

import functools
import itertools
import json
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odradek.conventions.dataclass import dataclass
from odradek.pipelines.definition.column_types import Array, ColumnType, Decimal, Map, Primitive, Struct
from odradek.pipelines.definition.ddl import parse_ddl
from odradek.pipelines.definition.type_letters import (
    ARGUMENTS,
    ARRAYS,
    NUMBERS,
    OTHER,
    PAIRED,
    REFUSED,
    RESULTS,
    UNDECIDED,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

ONE = "".join(ARGUMENTS)
AGGREGATE = "agg_funcs"  # the group of aggregate functions
OTHER_AGGREGATES = frozenset(("schema_of_variant_agg", "vector_avg", "vector_sum"))  # which Spark lists in other groups
ANY_NUMBER = 9  # this count of arguments stands for any number from there on
SAFE_RESULTS = {"m": "b", "r": "bs", "A": "b"}  # results that do not depend on the types inside the container


# Spark's grammar has these, its list of functions has not.
OF_GRAMMAR = frozenset(
    {"cast", "dateadd", "extract", "identifier", "timestampadd", "timestampdiff", "trim", "try_cast"}
)


class Answer(Enum):
    """Spark's answer to a call where it is not a type."""

    REFUSED = "refused"
    UNKNOWN = "unknown"


@functools.cache
def table() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(__file__).with_name("spark_functions.json").read_text(encoding="utf-8"))
    return found


@functools.cache
def aggregate_names() -> frozenset[str]:
    """The aggregate functions of Spark."""
    return frozenset(name for name in table()["functions"] if kind_of(name) == AGGREGATE)


def kind_of(name: str) -> str:
    """The group of a function of Spark: agg_funcs, window_funcs, generator_funcs and others."""
    return AGGREGATE if name in OTHER_AGGREGATES else str(table()["functions"][name]["kind"])


@functools.cache
def types_by_letter() -> dict[str, ColumnType]:
    return {letter: parse_ddl(f"x {ddl}")[0].type for letter, ddl in RESULTS.items()}


@functools.cache
def letters_by_type() -> dict[ColumnType, str]:
    return {kind: letter for letter, kind in types_by_letter().items() if letter in ARGUMENTS}


def exact_letter(kind: ColumnType, tried: str) -> str:
    """The letter of a type that was tried itself, or empty. Spark treats decimals of all precisions alike."""
    letter = "n" if isinstance(kind, Decimal) else letters_by_type().get(kind, "")
    return letter if letter in tried else ""


def letters_of(kind: ColumnType, tried: str) -> str:
    """The letters that stand for a type: its own, or those of similar types; empty if there are none."""
    similar = ""
    if isinstance(kind, Array):
        similar = ARRAYS
    elif isinstance(kind, Map | Struct):
        similar = "m" if isinstance(kind, Map) else "r"
    elif kind in (Primitive("TINYINT"), Primitive("SMALLINT"), Primitive("FLOAT")):
        similar = NUMBERS
    return exact_letter(kind, tried) or "".join(letter for letter in similar if letter in tried)


def is_container(kind: ColumnType) -> bool:
    return isinstance(kind, Array | Map | Struct)


@dataclass(frozen=True, slots=True)
class Functions:
    """Spark's functions, and the names of functions that a definition declares."""

    declared: frozenset[str] = frozenset()
    is_open: bool = False  # Python code of the definition may register further functions

    @property
    def names(self) -> list[str]:
        return [*table()["functions"], *self.declared]

    def is_known(self, name: str) -> bool:
        return self.is_open or name in table()["functions"] or name in self.declared or name in OF_GRAMMAR

    def is_spark(self, name: str) -> bool:
        return name in table()["functions"] and name not in self.declared

    def kind(self, name: str) -> str:
        """The group of a function of Spark; empty for others."""
        return kind_of(name) if self.is_spark(name) else ""

    def counts(self, name: str) -> list[int] | None:
        """The numbers of arguments that a function takes; None if unknown."""
        return list(table()["functions"][name]["counts"]) or None if self.is_spark(name) else None

    def takes(self, name: str, count: int) -> bool:
        counts = self.counts(name)
        return counts is None or count in counts or (count > ANY_NUMBER and ANY_NUMBER in counts)

    def call(self, name: str, types: Sequence[ColumnType | None]) -> ColumnType | Answer:
        """The type of a call, or that it is refused or unknown."""
        if not self.is_spark(name):
            return Answer.UNKNOWN
        return answer(table()["functions"][name].get(str(len(types))), types, is_operator=False)


def operate(operator: str, *types: ColumnType | None) -> ColumnType | Answer:
    """The type of an operator's result, or that it is refused or unknown."""
    return answer(table()["operators"].get(f"{operator} {len(types)}"), types, is_operator=True)


def answer(row: str | None, types: Sequence[ColumnType | None], *, is_operator: bool) -> ColumnType | Answer:
    known = [kind for kind in types if kind is not None]
    tried = ONE if len(types) == 1 else PAIRED
    options = [letters_of(kind, tried) for kind in known]
    if row is None or len(known) < len(types) or not all(options):
        return Answer.UNKNOWN
    found = {looked_up(row, letters) for letters in itertools.product(*options)}
    if found == {REFUSED}:
        return Answer.REFUSED if refuses_alike(row, known, is_operator=is_operator) else Answer.UNKNOWN
    if len(found) > 1 or found & {REFUSED, UNDECIDED, OTHER}:
        return Answer.UNKNOWN
    letter = found.pop()
    inside = [letters for kind, letters in zip(known, options, strict=True) if not exact_letter(kind, tried)]
    if inside and (letter in "aARQmr" or any(letter not in SAFE_RESULTS.get(each, letter) for each in inside)):
        return Answer.UNKNOWN
    if letter == "n" and any(isinstance(kind, Decimal) and kind != Decimal(10, 2) for kind in known):
        return Answer.UNKNOWN
    return types_by_letter()[letter]


def looked_up(row: str, letters: Sequence[str]) -> str:
    order = ONE if len(letters) == 1 else PAIRED
    position = 0
    for letter in letters:
        position = position * len(order) + order.index(letter)
    return row[position]


def refuses_alike(row: str, known: Sequence[ColumnType], *, is_operator: bool) -> bool:
    """Whether the refusal holds for types that were not tried themselves.

    A function may relate the types inside a container to another argument (`array_contains`). An operator that refuses
    two containers of one type refuses all of their kind.
    """
    vague = [number for number, kind in enumerate(known) if is_container(kind) and not exact_letter(kind, PAIRED)]
    if not vague or len(known) == 1 or is_operator:
        return True
    if any(isinstance(known[number], Array) for number in vague):
        return False
    options = [letters_of(kind, PAIRED) if number in vague else PAIRED for number, kind in enumerate(known)]
    return all(looked_up(row, letters) == REFUSED for letters in itertools.product(*options))
