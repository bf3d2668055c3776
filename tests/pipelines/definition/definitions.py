"""Definitions for tests: a small valid one, and functions that return the problems of a text."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from odradek.pipelines.definition.places import Problems
from odradek.pipelines.definition.yaml_nodes import read_raw_yaml
from odradek.pipelines.planning.loading import Choices, assembled

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.pipelines.definition.model import Pipeline
    from odradek.pipelines.definition.vocabulary import Engine
    from odradek.pipelines.planning.loading import Definition

SOURCE = """
pipeline: p
sources:
  rigs:
    topic: rigs
    schema: "id BIGINT, at TIMESTAMP, reading STRUCT<pressure: DOUBLE, unit: STRING>"
    watermark: {column: at, delay: 1 minute}
  raw: {topic: raw, format: text}
  pumps: {files: {path: pumps.csv, format: csv}, schema: "id BIGINT, name STRING"}
"""
OUT = "sinks: {o: {from: s, console: true}}\n"
CONSOLE = "pipeline: p\nsources: {s: {topic: t, schema: id BIGINT}}\n" + OUT


def mappings(keys: list[str], values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Small dictionaries; `st.dictionaries` of a recursive strategy warns about its own description when it retries."""
    return st.lists(st.tuples(st.sampled_from(keys), values), max_size=4).map(dict)


def define(text: str, environment: Mapping[str, str] | None = None, engine: Engine | None = None) -> Definition:
    """A definition in a file named p.yml."""
    problems = Problems()
    root = read_raw_yaml(textwrap.dedent(text), "p.yml", problems)
    return assembled(root, "p.yml", environment or {}, problems, Choices(engine=engine))


def reported(text: str, environment: Mapping[str, str] | None = None, engine: Engine | None = None) -> list[str]:
    """The problems of a definition, one line each."""
    return [str(each).removeprefix("p.yml:") for each in define(text, environment, engine).problems]


def sound(text: str) -> Pipeline:
    """The pipeline of a valid definition; warnings are ignored."""
    definition = define(text)
    assert [str(each) for each in definition.problems if each.severity == "error"] == []
    assert definition.pipeline is not None
    return definition.pipeline


def reported_for(steps_and_ends: str, engine: Engine | None = None, head: str = SOURCE) -> list[str]:
    """The problems of steps, sinks and views over the sources above, without their places."""
    text = head + textwrap.dedent(steps_and_ends)
    return [f"{each.severity}: {each.text}" for each in define(text, engine=engine).problems]


def errors(text: str, engine: Engine | None = None) -> list[str]:
    return [line.removeprefix("error: ") for line in reported_for(text, engine) if line.startswith("error")]


def warnings(text: str, engine: Engine | None = None) -> list[str]:
    """The warnings of a definition, except those of sources without a use."""
    lines = [line.removeprefix("warning: ") for line in reported_for(text, engine) if line.startswith("warning")]
    return [line for line in lines if "no sink and no view uses the source" not in line]
