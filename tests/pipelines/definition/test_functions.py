"""`functions:`: Python functions that SQL calls, checked without importing them."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import pytest

from odradek.pipelines.definition.column_types import Primitive
from odradek.pipelines.planning.loading import load_yaml

if TYPE_CHECKING:
    from pathlib import Path

TEXT = """
pipeline: p
functions:
  level: {python: "rules_of_f:level", returns: DOUBLE}
  scaled: {python: "rules_of_f:scaled", returns: DOUBLE, pandas: true}
sources: {s: {topic: t, schema: "a DOUBLE", columns: {b: level(a)}}}
steps:
  x: {sql: "select a, 'level(a)' as c from s", expect: {e: SCALED (a) > 0}}
  y: {sql: "select a as my_level from s"}
sinks: {o: {from: x, topic: out, key: level(a)}, z: {from: y, topic: other}}
"""


def reported(folder: Path, text: str = TEXT) -> list[str]:
    (folder / "rules_of_f.py").write_text("raise SystemExit\ndef level(a): ...\ndef scaled(a): ...\n")
    (folder / "p.yml").write_text(textwrap.dedent(text))
    return [f"{each.place.line}: {each.text}" for each in load_yaml(str(folder / "p.yml"), {}).problems]


def test_functions_are_found_without_running_their_module(tmp_path: Path) -> None:
    assert reported(tmp_path) == []
    level, scaled = load_yaml(str(tmp_path / "p.yml"), {}).require().functions
    assert (level.returns, level.is_pandas, level.is_deterministic) == (Primitive("DOUBLE"), False, True)
    assert (scaled.is_pandas, scaled.is_deterministic) == (True, True)
    (refusal,) = reported(tmp_path, TEXT.replace("pandas: true", "deterministic: false"))
    assert refusal.startswith("8: step 'x' uses scaled, which the rows do not determine; ")


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (
            "rules_of_f:level",
            "rules_of_f:levle",
            "4: module 'rules_of_f' does not define 'levle'; did you mean 'level'?",
        ),
        ("rules_of_f:level", "nowhere_of_f:level", "4: module 'nowhere_of_f' of nowhere_of_f:level was not found; "),
        ("returns: DOUBLE}", "returns: DUBLE}", "4: returns of function 'level': 'DUBLE' is not a type; did you mean"),
        ("returns: DOUBLE}", "}", "4: function 'level' has no returns; add the type of its result: returns: DOUBLE"),
        ("returns: DOUBLE}", "returns: 'INT, b INT'}", "4: returns of function 'level' must be one type; "),
        ("returns: DOUBLE}", "returns: [INT]}", "4: returns of function 'level' must be a type, not a list; "),
        ("  level:", "  upper:", "4: 'upper' is the name of a built-in function of SQL; choose another name"),
        ("  scaled:", "  Level:", "5: the name 'Level' is already used in line 4; choose another: SQL does not"),
        ("pandas: true", "pandas: 1", "5: pandas of function 'scaled' must be true or false, not the number 1"),
        (
            "  level:",
            "  a level:",
            "4: 'a level' cannot be the name of a function; use letters, digits and underscores",
        ),
    ],
)
def test_wrong_functions_are_reported(tmp_path: Path, before: str, after: str, expected: str) -> None:
    lines = reported(tmp_path, TEXT.replace(before, after, 1))
    assert any(line.startswith(expected) for line in lines), lines
