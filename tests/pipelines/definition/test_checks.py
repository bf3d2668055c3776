"""Problems of definitions that can be parsed but cannot run: names, dead letters, imports, files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from odradek.pipelines.definition.loading import load_yaml
from odradek.pipelines.definition.places import ProblemList
from odradek.pipelines.definition.vocabulary import Engine
from tests.pipelines.definition.definitions import (
    CONSOLE,
    OUT,
    SOURCE,
    define,
    errors,
    reported,
    reported_for,
    warnings,
)

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "steps: {rigs: {sql: select 1 as a}}\nsinks: {o: {from: rigs, console: true}}",
            "the name 'rigs' is already used",
        ),
        (
            "steps: {RIGS: {sql: select 1 as a}}\nsinks: {o: {from: rigs, console: true}}",
            "the name 'RIGS' is already used",
        ),
        (
            "steps: {s: {sql: select * from rig}}\n" + OUT,
            "step 's' reads 'rig', which is neither a source nor a step; did",
        ),
        ("sinks: {o: {from: rigz, console: true}}", "sink 'o' reads 'rigz', which is neither a source nor a step"),
        ("views: {o: {from: rigz, key: id}}", "view 'o' reads 'rigz', which is neither"),
        ("steps: {s: {sql: select * from s}}\n" + OUT, "step 's' reads itself: s ← s"),
        (
            "steps: {a: {sql: select * from b}, b: {sql: select * from s}, s: {sql: select * from a}}\n" + OUT,
            "step 'a' is part of a cycle: a ← b ← s ← a",
        ),
        ("steps: {s: {sql: select 1 as a}}", "the pipeline has neither sinks nor views"),
        (
            "steps: {s: {sql: 'select * from rigs', view: {key: id}}}\nviews: {s: {from: s, key: id}}",
            "the name 's' is already used",
        ),
    ],
)
def test_names(text: str, said: str) -> None:
    assert [line for line in errors(text) if said in line], errors(text)


def test_names_of_tables_do_not_mind_case() -> None:
    assert errors("steps: {s: {sql: select ID from RIGS}}\n" + OUT) == []


def test_an_unused_step_is_a_warning() -> None:
    text = "steps: {s: {sql: select * from rigs}, t: {sql: select * from s}}\n" + OUT
    assert [line for line in warnings(text) if "step 't'" in line] == [
        "no sink and no view uses the step 't'; its rows are not written; remove it"
    ]


CHECKED = "its rows are not written, but its expectations are checked"


@pytest.mark.parametrize(
    ("otherwise", "engine", "said"),
    [
        ("warn", Engine.STANDARD, CHECKED),
        ("drop", Engine.BATCH, CHECKED),
        ("drop", Engine.REALTIME, CHECKED),
        ("quarantine", Engine.STANDARD, f"{CHECKED}, and its rejected rows become dead letters"),
        ("quarantine", Engine.REALTIME, f"{CHECKED}, and its rejected rows become dead letters"),
        ("fail", Engine.BATCH, f"{CHECKED}, and a row that does not meet them stops the pipeline"),
    ],
)
def test_the_expectations_of_an_unused_step_are_checked(otherwise: str, engine: Engine, said: str) -> None:
    step = f"u: {{sql: select id from rigs, expect: {{e: {{check: id > 0, otherwise: {otherwise}}}}}}}"
    text = f"dead_letters: d\nsteps: {{s: {{sql: select * from rigs}}, {step}}}\nsinks: {{o: {{from: s, topic: o}}}}\n"
    assert f"warning: no sink and no view uses the step 'u'; {said}; remove it" in reported_for(text, engine)


@pytest.mark.parametrize(
    ("name", "ends", "engine", "said"),
    [
        ("raw", "", Engine.STANDARD, ", but its records are read, to count those that cannot be parsed"),
        (
            "raw",
            "dead_letters: d\n",
            Engine.STANDARD,
            ", but its records are read, and those that cannot be parsed become dead letters",
        ),
        ("pumps", "dead_letters: d\n", Engine.BATCH, ""),
    ],
)
def test_an_unused_topic_is_read(name: str, ends: str, engine: Engine, said: str) -> None:
    text = f"{ends}sinks: {{o: {{from: rigs, topic: o}}}}\n"
    warning = f"warning: no sink and no view uses the source '{name}'; its rows are not written{said}; remove it"
    assert warning in reported_for(text, engine)


def test_a_topic_read_and_written_is_a_warning() -> None:
    assert "records may circulate endlessly" in warnings("sinks: {o: {from: rigs, topic: rigs}}")[0]


def test_quarantine_needs_dead_letters() -> None:
    text = "steps: {s: {sql: select id from rigs, expect: {e: {check: id > 0, otherwise: quarantine}}}}\n" + OUT
    assert "quarantines rows, and dead_letters is not set; add dead_letters: TOPIC" in errors(text)[0]
    assert errors(text + "dead_letters: d\n") == []


MODULE = """
raise RuntimeError("checking runs no code of the user's")
import json as js
CONSTANT = 1
def one(a): ...
def two(a, b=1): ...
def many(*all): ...
def named(*, key): ...
class Processor: ...
"""


@pytest.mark.parametrize(
    ("path", "inputs", "said"),
    [
        ("rules:one", 1, None),
        ("rules:two", 2, None),
        ("rules:many", 2, None),
        ("rules:js", 1, None),
        ("pack.inner:one", 1, None),
        ("json.decoder:JSONDecoder", 1, None),
        ("rules:onee", 1, "module 'rules' does not define 'onee'; did you mean 'one'?"),
        ("ruels:one", 1, "module 'ruels' of ruels:one was not found"),
        ("pack.outer:one", 1, "module 'pack.outer' of pack.outer:one was not found"),
    ],
)
def test_import_paths_are_followed_without_importing(tmp_path: Path, path: str, inputs: int, said: str | None) -> None:
    (tmp_path / "rules.py").write_text(MODULE)
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / "__init__.py").write_text(MODULE)
    (tmp_path / "pack" / "inner.py").write_text(MODULE)
    names = ["a", "b"][:inputs]
    (tmp_path / "p.yml").write_text(
        "pipeline: p\nsources: {a: {topic: a, format: text}, b: {topic: b, format: text}}\n"
        f"steps: {{s: {{from: [{', '.join(names)}], python: '{path}'}}}}\n" + OUT
    )
    problems = [each.text for each in load_yaml(str(tmp_path / "p.yml"), {}).problems if each.severity == "error"]
    assert problems == [] if said is None else said in problems[0]


def test_a_file_that_is_not_there_or_not_text_is_reported(tmp_path: Path) -> None:
    assert "cannot be read: No such file" in load_yaml(str(tmp_path / "p.yml"), {}).problems[0].text
    (tmp_path / "q.yml").write_bytes(b"pipeline: p\nengine: \xff\n")
    assert str(load_yaml(str(tmp_path / "q.yml"), {}).problems[0]).endswith(
        "q.yml:2:9: error: the file is not UTF-8; save it as UTF-8"
    )


def test_only_a_sound_definition_gives_its_pipeline() -> None:
    assert define(SOURCE + "sinks: {o: {from: rigs, console: true}}").require().name == "p"
    with pytest.raises(ProblemList) as caught:
        define("pipeline: p\nengin: x\nsinkz: {}\n").require()
    assert [each.place.line for each in caught.value][-2:] == [2, 3]
    assert "p.yml:2:1: error: unknown key 'engin'" in str(caught.value)


@pytest.mark.parametrize(
    "name", ["__rejected", "__period", "__place", "__rank", "__value", "__read", "__window", "__position"]
)
def test_names_of_internal_columns_are_refused(name: str) -> None:
    assert any(
        f"'{name}', which is internal" in each
        for each in errors(f"steps: {{s: {{sql: select id as {name} from rigs}}}}\n" + OUT)
    )
    text = CONSOLE.replace("id BIGINT", "'id BIGINT, __Origin STRING'")
    assert any("'__Origin', which is internal" in each for each in reported(text))
