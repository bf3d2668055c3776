"""`functions:`: Python functions that SQL calls, checked without importing them."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import pytest

from odradek.pipelines.definition.column_types import Primitive
from odradek.pipelines.definition.function_calls import called_functions
from odradek.pipelines.definition.loading import load_yaml
from odradek.pipelines.definition.vocabulary import Engine

if TYPE_CHECKING:
    from pathlib import Path

TEXT = """
pipeline: p
functions:
  level: {python: "rules_of_f:level", returns: DOUBLE}
  scaled: {python: "rules_of_f:scaled", returns: DOUBLE, pandas: true, deterministic: false}
sources: {s: {topic: t, schema: "a DOUBLE", columns: {b: level(a)}}}
steps:
  x: {sql: "select a, 'level(a)' as c from s", expect: {e: SCALED (a) > 0}}
  y: {sql: "select a as my_level from s"}
sinks: {o: {from: x, topic: out, key: level(a)}, z: {from: y, topic: other}}
"""


NOT_DETERMINISTIC = (
    "5: the function 'scaled' is not deterministic: its value may differ between sinks and after a replay; compute the "
    "value from the row, or in the producer"
)


def reported(folder: Path, text: str = TEXT, engine: Engine | None = None) -> list[str]:
    (folder / "rules_of_f.py").write_text("raise SystemExit\ndef level(a): ...\ndef scaled(a): ...\n")
    (folder / "p.yml").write_text(textwrap.dedent(text))
    return [f"{each.place.line}: {each.text}" for each in load_yaml(str(folder / "p.yml"), {}, engine).problems]


def test_functions_are_found_without_running_their_module(tmp_path: Path) -> None:
    assert reported(tmp_path) == [NOT_DETERMINISTIC]
    level, scaled = load_yaml(str(tmp_path / "p.yml"), {}).require().functions
    assert (level.returns, level.is_pandas, level.is_deterministic) == (Primitive("DOUBLE"), False, True)
    assert (scaled.is_pandas, scaled.is_deterministic) == (True, False)


def test_calls_are_found_in_every_expression(tmp_path: Path) -> None:
    reported(tmp_path)
    found = load_yaml(str(tmp_path / "p.yml"), {}).require()
    assert called_functions(found) == {"level", "scaled"}
    assert called_functions(found, ["x"]) == {"scaled"}
    assert called_functions(found, ["y", "z"]) == set()
    assert called_functions(found, ["o"]) == {"level"}


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
        ("  scaled:", "  Level:", "5: the function 'Level' is already declared in line 4; rename one"),
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


@pytest.mark.parametrize(
    ("join", "is_refused"),
    [
        ("left join s t on level(s.a, t.a)", True),
        ("left semi join s t on s.a = t.a and level(s.a + t.a) > 0", True),
        ("join s t on level(s.a, t.a)", False),
        ("left join s t on level(s.a) = t.a", False),
    ],
)
def test_a_function_of_both_sides_is_called_in_inner_joins_only(tmp_path: Path, join: str, is_refused: bool) -> None:
    text = TEXT.replace("select a as my_level from s", f"select s.a as my_level from s {join}")
    found = [line for line in reported(tmp_path, text, Engine.BATCH) if "with columns of both sides" in line]
    assert bool(found) is is_refused


def test_real_time_mode_runs_no_python(tmp_path: Path) -> None:
    why = "which is Python; use engine: standard"
    assert reported(tmp_path, engine=Engine.BATCH) == []
    assert reported(tmp_path, engine=Engine.REALTIME) == [
        NOT_DETERMINISTIC,
        f"6: the realtime engine cannot run source 's': it calls level, {why}",
        f"8: the realtime engine cannot run step 'x': it calls scaled, {why}",
        f"10: the realtime engine cannot run sink 'o': it calls level, {why}",
    ]
    (tmp_path / "a.avsc").write_text('{"type": "record", "name": "a", "fields": [{"name": "a", "type": "long"}]}')
    text = "pipeline: p\nsources: {s: {topic: t, format: avro, schema: {file: a.avsc}}}\n"
    text += "sinks: {o: {from: s, topic: out}}\n"
    assert reported(tmp_path, text, Engine.REALTIME) == [
        "2: the realtime engine cannot run source 's': it has Avro, which is decoded in Python; use engine: standard"
    ]
