"""Merges the functions of several versions of Spark: a call is refused only if every version refuses it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odradek.pipelines.definition.type_letters import OTHER, REFUSED, UNDECIDED

if TYPE_CHECKING:
    from collections.abc import Sequence


def merged(recordings: Sequence[dict[str, Any]]) -> dict[str, Any]:
    functions: dict[str, Any] = {}
    for name in sorted({name for each in recordings for name in each["functions"]}):
        entries = [each["functions"][name] for each in recordings if name in each["functions"]]
        functions[name] = merged_function(entries)
    operators = {
        name: merged_answers([each["operators"][name] for each in recordings]) for name in recordings[0]["operators"]
    }
    return {"versions": [each["version"] for each in recordings], "functions": functions, "operators": operators}


def merged_function(entries: Sequence[dict[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "kind": entries[0]["kind"],
        "counts": sorted({count for each in entries for count in each["counts"]}),
    }
    for count in ("1", "2"):
        answers = [each[count] for each in entries if count in each]
        if answers and len(answers) == len(entries):
            combined = merged_answers(answers)
            if set(combined) - {UNDECIDED}:
                found[count] = combined
    return found


def merged_answers(answers: Sequence[str]) -> str:
    return "".join(merged_letter(set(letters)) for letters in zip(*answers, strict=True))


def merged_letter(letters: set[str]) -> str:
    if len(letters) == 1:
        return letters.pop()
    return UNDECIDED if letters & {REFUSED, UNDECIDED} else OTHER
