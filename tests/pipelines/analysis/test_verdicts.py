"""Our verdicts on the corpus beside Spark's: never an error where Spark accepts, and most of its refusals found."""

from __future__ import annotations

import pytest

from odradek.pipelines.definition.ddl import parse_ddl
from odradek.pipelines.definition.spark_functions import Functions
from odradek.pipelines.definition.sql_checks import findings_of_query
from odradek.pipelines.definition.sql_columns import unknown_columns
from odradek.pipelines.definition.sql_text import SqlError, parse_query
from odradek.pipelines.definition.table_columns import Columns
from tests.pipelines.analysis.corpus import TABLES, hand_written
from tests.pipelines.analysis.record_verdicts import read_verdicts

KNOWN = {name: Columns({each.name: each.type for each in parse_ddl(ddl)}) for name, ddl in TABLES.items()}
LEAST_FOUND = {"hand-written": 0.9, "generated": 0.88}


def found_in(query: str) -> list[str]:
    """What `validate` reports about a query."""
    try:
        tree = parse_query(query)
    except SqlError as error:
        return [error.message]

    def look(name: str) -> Columns | None:
        return KNOWN.get(name.lower())

    unknown = [f"no column {each.name}" for each in unknown_columns(tree, look)]
    return unknown + [each.message for each in findings_of_query(query, look, Functions())]


VERDICTS = read_verdicts()
REFUSED = {query: verdicts for query, verdicts in VERDICTS.items() if all(verdicts.values())}
ACCEPTED = [query for query, verdicts in VERDICTS.items() if not all(verdicts.values())]


def test_nothing_is_reported_that_a_version_of_spark_accepts() -> None:
    false_alarms = {query: found for query in ACCEPTED if (found := found_in(query))}
    assert false_alarms == {}


@pytest.mark.parametrize("part", LEAST_FOUND)
def test_most_of_what_spark_refuses_is_found(part: str) -> None:
    by_hand = set(hand_written())
    refused = [query for query in REFUSED if (query in by_hand) == (part == "hand-written")]
    missed = {query: REFUSED[query] for query in refused if not found_in(query)}
    found = len(refused) - len(missed)
    print(f"{part}: {found} of {len(refused)} refusals found")
    assert found / len(refused) >= LEAST_FOUND[part], "\n".join(missed)


def test_the_verdicts_are_of_both_versions() -> None:
    assert {version for verdicts in VERDICTS.values() for version in verdicts} == {"4.1.1", "4.3.0"}
