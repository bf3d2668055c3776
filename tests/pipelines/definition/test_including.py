"""Definitions of several files: merged by name, with places and relative paths of the included file."""

from __future__ import annotations

import os
import textwrap
from typing import TYPE_CHECKING

from odradek.pipelines.definition.including import HINT, RELATIVE
from odradek.pipelines.definition.loading import load_file, load_yaml

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from odradek.pipelines.definition.model import Pipeline

MAIN = """
pipeline: p
include: [sources.yml, "more/*.yml"]
sinks: {o: {from: x, topic: out}}
"""
SOURCES = """
parameters: {table: pumps}
sources:
  s: {topic: t, format: text}
"""
MORE = """
sources:
  files: {files: {path: data, format: json}, schema: {file: schema.json}}
  pumps: {jdbc: {url: "jdbc:sqlite:pumps.db", table: "${table}"}}
steps:
  combined: {from: [s, files, pumps], python: "steps_of_more:combine"}
  x: {sql: "select *, twice(a) as b from combined"}
sinks:
  archive: {from: x, files: {path: archive, format: json}}
  far: {from: x, files: {path: "s3a://bucket/far", format: json}}
  table: {from: x, table: t, url: "sqlite:///rows.db"}
functions:
  twice: {python: "steps_of_more:twice", returns: INT}
"""


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_yml", ".yml").replace("_py", ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))


def whole(folder: Path, **files: str) -> None:
    write(folder, **{"p_yml": MAIN, "sources_yml": SOURCES, "more__steps_yml": MORE, **files})
    (folder / "more").mkdir(exist_ok=True)
    (folder / "more" / "schema.json").write_text('{"type": "object", "properties": {"a": {"type": "string"}}}')
    (folder / "more" / "steps_of_more.py").write_text("def combine(a, b, c): ...\ndef twice(x): ...\n")


def reported(folder: Path) -> list[str]:
    return [str(each).replace(f"{folder}/", "") for each in load_yaml(str(folder / "p.yml"), {}).problems]


def sound(folder: Path) -> Pipeline:
    assert reported(folder) == []
    return load_yaml(str(folder / "p.yml"), {}).require()


def test_files_are_merged_by_name(tmp_path: Path) -> None:
    whole(tmp_path)
    found = sound(tmp_path)
    assert [each.name for each in found.sources] == ["s", "files", "pumps"]
    assert [each.name for each in found.sinks] == ["o", "archive", "far", "table"]
    assert found.sources[2].origin.table == "pumps"  # type: ignore[union-attr]  # of the declared kind
    assert found.directory == str(tmp_path)


def test_paths_start_at_the_folder_of_their_file(tmp_path: Path) -> None:
    whole(tmp_path)
    found = sound(tmp_path)
    assert found.sources[1].origin.path == "more/data"  # type: ignore[union-attr]
    assert found.sources[2].origin.url == "jdbc:sqlite:more/pumps.db"  # type: ignore[union-attr]
    targets = [each.target for each in found.sinks]
    assert [targets[1].path, targets[2].path] == ["more/archive", "s3a://bucket/far"]  # type: ignore[union-attr]
    assert targets[3].url == "sqlite:///more/rows.db"  # type: ignore[union-attr]
    assert found.functions[0].reference.directory == str(tmp_path / "more")


def test_paths_do_not_depend_on_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole(tmp_path)
    monkeypatch.chdir(tmp_path.parent)
    found = load_yaml(os.path.relpath(tmp_path / "p.yml"), {}).require()
    assert found.sources[1].origin.path == "more/data"  # type: ignore[union-attr]


def test_python_definitions_include_files(tmp_path: Path) -> None:
    write(tmp_path, sources_yml=SOURCES)
    (tmp_path / "including_p.py").write_text(
        'from odradek.pipelines import Pipeline\np = Pipeline("p", include=["sources.yml"])\n'
        'p.sink("o", from_="s", console=True)\n'
    )
    (definition,) = load_file(str(tmp_path / "including_p.py"), {})
    assert [each.name for each in definition.require().sources] == ["s"]


def test_a_duplicate_is_reported_with_both_places(tmp_path: Path) -> None:
    whole(tmp_path, more__again_yml="sources: {s: {topic: u}}\nengine: batch\n", more__twice_yml="engine: standard\n")
    assert reported(tmp_path) == [
        (
            "more/again.yml:1:11: error: 's' of sources is already declared in sources.yml:4:3; keep one of them, or "
            "rename one"
        ),
        "more/twice.yml:1:1: error: engine is already set in more/again.yml:2:1; keep one of them",
    ]


def test_a_source_and_a_step_of_one_name_are_reported_with_both_places(tmp_path: Path) -> None:
    whole(tmp_path, more__again_yml="steps: {s: {sql: select 1}}\n")
    (found,) = reported(tmp_path)
    assert found.startswith("more/again.yml:1:9: error OD02: the name 's' is already used in sources.yml:4:3; choose")


def test_errors_name_the_included_file(tmp_path: Path) -> None:
    whole(tmp_path, more__more_yml="steps: {y: {sql: select nothing from s}}\n")
    assert reported(tmp_path)[0].startswith("more/more.yml:1:25: error OD04: there is no column 'nothing'")


def test_a_cycle_is_reported(tmp_path: Path) -> None:
    write(tmp_path, p_yml="pipeline: p\ninclude: a.yml\n", a_yml="include: [b.yml]\n", b_yml="include: [p.yml]\n")
    assert reported(tmp_path)[0] == (
        "b.yml:1:11: error: the file includes itself: p.yml → a.yml → b.yml → p.yml; remove one of the includes"
    )


def test_a_file_that_two_others_include_counts_once(tmp_path: Path) -> None:
    whole(tmp_path, more__a_yml="include: ../sources.yml\n")
    assert len(sound(tmp_path).sources) == 3


def test_files_that_cannot_be_included_are_reported(tmp_path: Path) -> None:
    write(
        tmp_path,
        p_yml="pipeline: p\ninclude: [none.yml, 'none/*.yml', 5, list.yml, empty.yml, '${PART:-part}.yml']\n",
        list_yml="- a\n",
        empty_yml="",
        part_yml="pipeline: q\n",
    )
    assert reported(tmp_path)[:4] == [
        "list.yml:1:1: error: an included file must be a mapping, not a list",
        "p.yml:1:1: error: the pipeline has no sources; add one: sources: {name: {topic: …}}",
        (
            "p.yml:2:11: error: the included file none.yml does not exist; relative paths start at the folder of the "
            "file that includes it"
        ),
        f"p.yml:2:21: error: no file matches 'none/*.yml'; {RELATIVE}",
    ]
    assert reported(tmp_path)[4:] == [
        f"p.yml:2:35: error: include must be a list of files, not the number 5; {HINT}",
        "part.yml:1:1: error: pipeline is already set in p.yml:1:1; the file that includes others names the pipeline",
    ]
