"""Parameters and secrets: which value wins, which type it has, and where none may appear."""

from __future__ import annotations

import json
import textwrap
from typing import TYPE_CHECKING, Any

import pytest

from odradek.pipelines.definition.model import TopicOrigin
from odradek.pipelines.definition.secrets import hidden
from odradek.pipelines.operating.fingerprints import fingerprints
from odradek.pipelines.planning.lineage import draw_text, lineage_of
from odradek.pipelines.planning.loading import NO_CHOICES, Choices, load_file, load_yaml
from odradek.pipelines.planning.rules import plan_again

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from odradek.pipelines.definition.model import Pipeline
    from odradek.pipelines.planning.loading import Definition

HEAD = """
pipeline: p
sources: {s: {topic: t, format: text, max_records_per_batch: "${limit}"}}
steps: {x: {sql: "select * from s where value > ${limit}"}}
sinks: {o: {from: x, topic: "${target}"}}
"""
PARAMETERS = HEAD + "parameters: {limit: 100, target: out}\n"


def load(
    folder: Path, text: str, environment: Mapping[str, str] | None = None, choices: Choices = NO_CHOICES
) -> Definition:
    (folder / "p.yml").write_text(textwrap.dedent(text))
    return load_yaml(str(folder / "p.yml"), environment or {}, choices)


def sound(*arguments: Any, **more: Any) -> Pipeline:
    definition = load(*arguments, **more)
    assert [str(each) for each in definition.problems] == []
    return definition.require()


def reported(*arguments: Any, **more: Any) -> list[str]:
    return [f"{each.place.line}:{each.place.column}: {each.text}" for each in load(*arguments, **more).problems]


def limit_of(pipeline: Pipeline) -> int | None:
    origin = pipeline.sources[0].origin
    assert isinstance(origin, TopicOrigin)
    return origin.max_records_per_batch


def test_a_parameter_keeps_its_type_where_it_stands_alone(tmp_path: Path) -> None:
    found = sound(tmp_path, PARAMETERS)
    assert limit_of(found) == 100
    assert found.steps[0].operation.text == "select * from s where value > 100"  # type: ignore[union-attr]  # of the declared kind
    assert found.sinks[0].target.topic == "out"  # type: ignore[union-attr]


def test_a_parameter_may_be_a_list_or_a_mapping(tmp_path: Path) -> None:
    text = """
        pipeline: p
        parameters: {names: [a, b], settings: {retries: 3}}
        kafka: ${settings}
        sources: {s: {topics: "${names}", format: text}}
        sinks: {o: {from: s, topic: out}}
    """
    found = sound(tmp_path, text)
    assert found.sources[0].origin.topics == ("a", "b")  # type: ignore[union-attr]
    assert found.kafka == {"retries": "3"}
    assert reported(tmp_path, text.replace('"${names}"', '["x-${names}"]')) == [
        "5:27: the parameter 'names' is a list and cannot be a part of a text; write ${names} alone"
    ]


def test_the_nearest_value_wins(tmp_path: Path) -> None:
    assert limit_of(sound(tmp_path, PARAMETERS, {"limit": "1"})) == 100  # a parameter hides the environment
    assert limit_of(sound(tmp_path, PARAMETERS, {"limit": "1"}, Choices({"limit": "8"}))) == 8


def test_parameters_may_use_the_environment_and_each_other(tmp_path: Path) -> None:
    text = HEAD + "parameters:\n  limit: ${limit:-5}\n  target: out-${limit}\n"
    assert sound(tmp_path, text).sinks[0].target.topic == "out-5"  # type: ignore[union-attr]
    text = HEAD + "parameters: {limit: 1, target: '${limit}-${other}', other: '${target}'}\n"
    assert reported(tmp_path, text)[1:] == [
        (
            "6:61: the parameter 'target' refers to itself, and the environment variable target is not set; "
            "set it, or give a default: ${target:-…}"
        )
    ]


def test_a_value_given_for_a_text_stays_text(tmp_path: Path) -> None:
    text = HEAD + "parameters: {limit: 1, target: out}\n"
    found = sound(tmp_path, text, choices=Choices({"target": "2026", "limit": "0x10"}))
    assert (found.sinks[0].target.topic, limit_of(found)) == ("2026", 16)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("text", "choices", "expected"),
    [
        (PARAMETERS, Choices({"limt": "1"}),
         "2:1: 'limt' is not a parameter of the pipeline; did you mean 'limit'?"),
        (
            PARAMETERS.replace("limit: 100", "limit: "),
            Choices(),
            ("3:63: the parameter 'limit' has no value; give it one: --set limit=…, or a default: ${limit:-…}"),
        ),
        (HEAD + "parameters: {limits: 1, target: out}\n", Choices(),
         "3:63: the environment variable limit is not set; did you mean the parameter 'limits'?"),
        (HEAD + "parameters: [a]\n", Choices(),
         "6:13: parameters of the pipeline must be a mapping of names, not a list; parameters: {name: …}"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_parameters_is_reported(tmp_path: Path, text: str, choices: Choices, expected: str) -> None:
    assert expected in reported(tmp_path, text, None, choices)


SECRET = "pass/wörd 1"
WITH_SECRET = """
    pipeline: p
    parameters: {password: "${file:secret}"}
    warehouse: postgresql://user:${password}@host/db
    kafka: {sasl.password: "${file:SECRET_PATH}"}
    sources: {s: {topic: t, format: text}}
    steps: {n: {from: s, by: [value], aggregate: {n: "count(if(value = '${password}', 1, null))"}}}
    sinks: {o: {from: s, topic: out, format: text, value: value}}
    views: {v: {from: n, key: [value]}}
"""


MASTER = """pipeline: p
master: MASTER
sources: {s: {topic: t, format: text}}
sinks: {o: {from: s, console: true}}
"""


def with_secret(folder: Path, text: str = WITH_SECRET) -> Definition:
    (folder / "secret").write_text(SECRET + "\n")
    return load(folder, text.replace("SECRET_PATH", str(folder / "secret")))


def test_a_secret_is_read_from_its_file(tmp_path: Path) -> None:
    found = with_secret(tmp_path).require()
    assert found.warehouse == f"postgresql://user:{SECRET}@host/db"
    assert found.kafka == {"sasl.password": SECRET}


def test_a_secret_is_in_no_output(tmp_path: Path) -> None:
    found = with_secret(tmp_path).require()
    plan = plan_again(found)
    prints = json.dumps(fingerprints(plan, {}, {}).as_object(), ensure_ascii=False)
    assert "***" in prints
    assert SECRET not in prints + draw_text(found, lineage_of(plan))
    assert found.without_secrets(f"cannot connect to {found.warehouse}") == (
        "cannot connect to postgresql://user:***@host/db"
    )


@pytest.mark.parametrize(
    "line",
    [
        "engine: ${password}",
        "dead_letters: ${password}",
        "dead_letters: 'an invalid name that is shortened in the message ${password}'",
    ],
)
def test_problems_do_not_show_secrets(tmp_path: Path, line: str) -> None:
    (problem,) = with_secret(tmp_path, WITH_SECRET.replace("pipeline: p", f"pipeline: p\n    {line}")).problems
    assert "***" in problem.text
    assert SECRET[:4] not in problem.text


def test_a_secret_is_text_whatever_it_looks_like(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("123\r\n")
    assert sound(tmp_path, MASTER.replace("MASTER", "${file:secret}")).master == "123"


def test_a_secret_that_cannot_be_read_is_reported(tmp_path: Path) -> None:
    (line,) = reported(tmp_path, MASTER.replace("MASTER", "${file:none}"))
    assert line == (
        f"2:9: the file of a secret cannot be read: {tmp_path}/none: No such file or directory; relative paths start "
        "at the definition's folder"
    )
    assert sound(tmp_path, MASTER.replace("MASTER", "${file:none:-local}")).master == "local"


@pytest.mark.parametrize(
    ("text", "secrets", "expected"),
    [
        ("a b c", {"b"}, "a *** c"),
        ("url p%40ss", {"p@ss"}, "url ***"),
        ("p@ss of p%40ss", {"p%40ss"}, "*** of ***"),
        ("it begins with long-se…", {"long-secret"}, "it begins with ***…"),
        ("nothing", {""}, "nothing"),
        ("one two", {"one\ntwo"}, "***"),
    ],
)
def test_secrets_are_hidden_in_every_spelling(text: str, secrets: set[str], expected: str) -> None:
    assert hidden(text, secrets) == expected


def test_python_definitions_have_parameters_too(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("geheim\n")
    (tmp_path / "defined_p.py").write_text(
        textwrap.dedent("""
            from odradek.pipelines import Pipeline

            p = Pipeline(
                "p", bootstrap_servers="${HOST:-nowhere}:9092", parameters={"limit": 100}, master="${file:secret}",
            )
            p.source("s", topic="t", format="text", max_records_per_batch="${limit}")
            p.sink("o", from_="s", console=True)
        """)
    )
    (definition,) = load_file(str(tmp_path / "defined_p.py"), {"HOST": "h"}, Choices({"limit": "500"}))
    found = definition.require()
    assert (found.bootstrap_servers, found.master, limit_of(found)) == ("h:9092", "geheim", 500)
