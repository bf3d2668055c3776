"""The planned parser agrees with the present one: equal models, and problems in the same lines."""

from __future__ import annotations

import ast
import re
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given

from odradek.pipelines.definition.parsing import parse_pipeline as parse_as_before
from odradek.pipelines.definition.parsing_planned import parse_pipeline
from odradek.pipelines.definition.places import Problems
from odradek.pipelines.definition.substituting import read_yaml
from tests.pipelines.both_parsers import parse_by_both
from tests.pipelines.definition.test_parsing import TREES, as_node

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[3]
FENCE = re.compile(r"^( *)```ya?ml\n(.*?)^ *```", re.DOTALL | re.MULTILINE)
SECTIONS = re.compile(r"^ *(pipeline|sources|steps|sinks|views|functions):", re.MULTILINE)


def texts_of(file: Path) -> Iterator[str]:
    """The texts of a file that may be definitions: blocks of a page, strings of Python, in which values are `x`."""
    if file.suffix == ".yml":
        yield file.read_text()
    elif file.suffix == ".md":
        yield from (textwrap.dedent(text) for _, text in FENCE.findall(file.read_text()))
    else:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.JoinedStr):
                yield "".join(str(part.value) if isinstance(part, ast.Constant) else "x" for part in node.values)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


def definitions(pattern: str) -> list[str]:
    """Definitions, whole or in parts, in the files of a pattern."""
    found = {text: None for file in sorted(ROOT.glob(pattern)) for text in texts_of(file) if SECTIONS.search(text)}
    return [textwrap.dedent(text) for text in found]


@pytest.mark.parametrize(
    ("pattern", "least"),
    [("docs/**/*.md", 20), ("src/**/*.yml", 3), ("bench/**/*.py", 1), ("tests/**/*.py", 450)],
)
def test_written_definitions_are_read_alike(pattern: str, least: int) -> None:
    read = 0
    for text in definitions(pattern):
        root = read_yaml(text, "p.yml", {}, Problems())
        if root is not None:  # not every text is YAML by itself
            parse_by_both(root, Problems())
            read += 1
    assert read >= least


@given(TREES)
def test_any_tree_is_read_by_both(tree: Any) -> None:
    """Trees without sense have problems for both, in lines that may differ."""
    present, planned = Problems(), Problems()
    parse_as_before(as_node(tree), present)
    parse_pipeline(as_node(tree), planned)
    assert bool(planned.errors) == bool(present.errors)
