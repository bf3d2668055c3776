"""How results are shown: the worst first, a bounded number of places, JSON with all counts."""

from __future__ import annotations

import click
import pytest

from odradek.admin.doctor.findings import Result, problem, warning
from odradek.cli.doctor import report_lines, report_object

RESULTS = [
    Result("first", (warning("something may fail", [f"place {each}" for each in range(8)], "Look: cmd"),)),
    Result("second", (problem("something fails", ["here"], "Repair: cmd"),)),
    Result("third"),
    Result("fourth", skipped="not authorized"),
    Result("fifth", skipped="not authorized"),
]


def test_text_shows_problems_first_and_a_bounded_number_of_places() -> None:
    lines = [click.unstyle(line) for line in report_lines("cluster", RESULTS, 5)]
    assert lines == [
        "cluster",
        "",
        "PROBLEM  something fails  [second]",
        "  here",
        "  → Repair: cmd",
        "",
        "WARNING  something may fail  [first]",
        *(f"  place {each}" for each in range(5)),
        "  and 3 more; --all shows them",
        "  → Look: cmd",
        "",
        "not examined (not authorized): fourth, fifth",
        "",
        "1 problem, 1 warning; 1 of 5 checks passed, 2 not examined",
    ]


def test_object_has_status_findings_and_counts() -> None:
    shown = report_object("cluster", "id", RESULTS, 5)
    assert shown["status"] == "problems"
    assert [each["check"] for each in shown["findings"]] == ["second", "first"]
    assert (len(shown["findings"][1]["where"]), shown["findings"][1]["where_count"]) == (5, 8)
    assert shown["passed"] == ["third"]
    assert shown["not_examined"][0] == {"check": "fourth", "reason": "not authorized"}


@pytest.mark.parametrize(
    ("results", "status"),
    [
        (RESULTS, "problems"),
        ([RESULTS[0], *RESULTS[2:]], "incomplete"),  # a problem may be in what was not examined
        (RESULTS[2:], "incomplete"),
        (RESULTS[3:], "incomplete"),
        ([RESULTS[0], RESULTS[2]], "warnings"),
        ([RESULTS[2]], "ok"),
        ([RESULTS[2], Result("fourth", skipped="give --config", is_requested=False)], "ok"),
    ],
)
def test_status_says_whether_all_checks_were_made(results: list[Result], status: str) -> None:
    assert report_object("cluster", "id", results, 5)["status"] == status
