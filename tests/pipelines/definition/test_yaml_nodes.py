"""YAML with places: the value and the place of each scalar, and the problems of invalid files."""

from __future__ import annotations

import string

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from odradek.pipelines.definition.nodes import MappingNode, Node, Scalar, to_plain
from odradek.pipelines.definition.places import Problems
from odradek.pipelines.definition.substituting import read_yaml
from tests.pipelines.definition.definitions import define, mappings, reported


def read(text: str, **environment: str) -> tuple[Node | None, list[str]]:
    problems = Problems()
    node = read_yaml(text, "f", environment, problems)
    return node, [str(each) for each in problems]


def plain(text: str, **environment: str) -> object:
    node, problems = read(text, **environment)
    assert problems == []
    assert node is not None
    return to_plain(node)


def test_words_mean_what_yaml_1_2_says() -> None:
    assert plain("{on: yes, a: no, b: true, c: 1, d: 1.5, e: ~, f: 0x10, g: '1', h: 2026-01-01, i: 1e3, j: }") == {
        "on": "yes", "a": "no", "b": True, "c": 1, "d": 1.5, "e": None, "f": 16, "g": "1", "h": "2026-01-01",
        "i": 1000.0, "j": None,
    }  # fmt: skip


def test_every_value_has_its_place() -> None:
    node, _ = read("a:\n  - b: 1\n    c: [x, y]\n")
    assert isinstance(node, MappingNode)
    inner = node.get("a").items[0]  # type: ignore[union-attr]  # as written above
    assert str(inner.get("c").items[1].place) == "f:3:12"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("text", "line", "column", "place"),
    [
        ("a: |\n  one\n  two\n", 2, 2, "f:3:4"),
        ("a: |2\n    one\n  two\n", 1, 4, "f:2:6"),
        ("a: |\n\n  one\n", 2, 1, "f:3:3"),
        ("a: one two\n", 1, 5, "f:1:8"),
        ("a: 'one two'\n", 1, 5, "f:1:9"),
        ("a: >\n  one\n  two\n", 1, 5, "f:1:4"),
        ("a: one\n  two three\n", 1, 9, "f:1:4"),
        ("a: |\r\n  one\r\n  two\r\n", 2, 2, "f:3:4"),
        ('a: "one\n  two"\n', 1, 5, "f:1:4"),
    ],
)
def test_a_place_inside_of_a_text_is_found(text: str, line: int, column: int, place: str) -> None:
    node, _ = read(text)
    assert isinstance(node, MappingNode)
    value = node.get("a")
    assert value is not None
    assert str(value.place.inside(line, column)) == place


def test_the_environment_is_put_in() -> None:
    text = "{a: '${A}', b: 'x${B:-y}z', c: '${C:-}', d: '$${A}', e: '$A'}"
    assert plain(text, A="1") == {"a": "1", "b": "xyz", "c": "", "d": "${A}", "e": "$A"}


def test_what_the_environment_puts_in_without_quotes_has_a_type() -> None:
    assert plain("a: ${A}\nb: ${B:-true}", A="3") == {"a": 3, "b": True}


def test_an_empty_variable_takes_the_default() -> None:
    assert plain("a: ${A:-x}", A="") == {"a": "x"}


def test_a_variable_that_is_not_set_is_reported_where_it_stands() -> None:
    assert read("a: |\n  one\n  two ${NAME}\n")[1] == [
        "f:3:7: error: the environment variable NAME is not set; set it, or give a default: ${NAME:-…}"
    ]


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("a: ${VAR:-x", 4),
        ("a: ${VAR", 4),
        ("a: 'x ${file:secret'", 7),
        ("a: ${B} and ${VAR:-x", 13),
        ("a: ${VAR:-x and ${B}", 4),
        ("a: ${VAR:-${B}}", 4),
        ("a: ${VAR and ${B}", 4),
    ],
)
def test_a_variable_without_its_brace_is_reported(text: str, column: int) -> None:
    (problem,) = read(text, VAR="1", B="2")[1]
    assert problem.startswith(f"f:1:{column}: error: '${{"), problem
    assert "has no closing brace; write ${NAME} or ${NAME:-default}" in problem


def test_other_dollars_and_braces_are_text() -> None:
    text = r"{a: '$${VAR', b: '^a${', c: '${1', d: 'b} ${}', e: '$VAR {'}"
    assert plain(text) == {"a": "$${VAR", "b": "^a${", "c": "${1", "d": "b} ${}", "e": "$VAR {"}


def test_places_after_a_variable_are_right() -> None:
    node, _ = read("a: x ${A} wrong", A="something long")
    assert isinstance(node, MappingNode)
    value = node.get("a")
    assert isinstance(value, Scalar)
    assert str(value.place.inside(1, value.text.index("wrong") + 1)) == "f:1:11"


def test_a_key_that_stands_twice_is_reported() -> None:
    assert read("a: 1\nb: {c: 1, c: 2}\na: 3")[1] == [
        "f:2:11: error: duplicate key 'c', first in line 2; keep one of the two",
        "f:3:1: error: duplicate key 'a', first in line 1; keep one of the two",
    ]


def test_aliases_and_merges_are_followed() -> None:
    assert plain("a: &a {x: 1, y: 2}\nb: *a\nc: {<<: *a, y: 3}") == {
        "a": {"x": 1, "y": 2},
        "b": {"x": 1, "y": 2},
        "c": {"x": 1, "y": 3},
    }


def test_an_alias_of_itself_is_reported() -> None:
    assert "the alias refers to a value that contains it" in read("a: &a [*a]")[1][0]


def test_billions_of_aliases_are_not_followed() -> None:
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 10)]
    head = "pipeline: p\nsources:\n  s:\n    topic: t\n    format: avro\n    schema:\n"
    text = head + "".join(f"      {line}\n" for line in levels)
    assert any("too large" in line for line in reported(text))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "1:1: error: the file is empty; start with `pipeline: name`"),
        ("# nothing\n", "1:1: error: the file is empty; start with `pipeline: name`"),
        ("a: 1\n\tb: 2\n", "2:1: error: YAML does not allow tabs for indentation; indent with spaces"),
        ("a: [1, 2", "1:9: error: this is not YAML"),
        ("a: b: c", "1:5: error: this is not YAML"),
        ("a: 1\n---\nb: 1\n", "2:1: error: this is not YAML"),
        ("a: {b: ${C}}\n", "1:"),
        ("a: \x00", "1:4: error: the character"),
        ("a: !!python/name:os.system x", "1:4: error: the tag"),
        ("- a\n- b\n", "1:1: error: a definition must be a mapping, not a list; start with `pipeline: name`"),
        ("text", "1:1: error: a definition must be a mapping, not 'text'; start with `pipeline: name`"),
        ("? [a]\n: b\n", "1:3: error: a key must be a scalar"),
    ],
)
def test_broken_files_are_reported_with_the_place(text: str, said: str) -> None:
    assert any(line.startswith(said) for line in reported(text)), reported(text)


def test_variables_in_braces_without_quotes_are_explained() -> None:
    assert "quote ${…} inside" in reported("a: {b: ${C}}\n")[0]


def test_deep_nesting_is_refused() -> None:
    assert "nested too deeply" in reported("[" * 1500 + "]" * 1500)[0]


@given(st.text(max_size=200))
def test_no_text_crashes(text: str) -> None:
    definition = define(text)
    assert definition.is_sound or definition.problems


TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(string.printable, max_size=12),
    lambda inner: st.lists(inner, max_size=4) | mappings(["a", "b", "on", "Key", "x y"], inner),
    max_leaves=20,
)


@given(TREES)
def test_trees_come_back_as_they_were_written(tree: object) -> None:
    text = yaml.safe_dump(tree, default_style='"')
    node, problems = read(text.replace("$", "$$") if "${" in text else text)
    if node is None or problems:
        assert tree is None or problems
        return

    def as_text(value: object) -> object:
        if isinstance(value, dict):
            return {key: as_text(item) for key, item in value.items()}
        return [as_text(item) for item in value] if isinstance(value, list) else None

    assert as_text(to_plain(node)) == as_text(tree)
