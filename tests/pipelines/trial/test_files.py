"""Test files are found next to definitions, and their problems are reported with the line."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import pytest

from odradek.pipelines.definition.model import TopicOrigin
from odradek.pipelines.definition.places import ProblemList, Problems
from odradek.pipelines.trial.given import WRITTEN_AT, GivenRecord, records_of
from odradek.pipelines.trial.parsing import find_files, read_case_file

if TYPE_CHECKING:
    from pathlib import Path

DEFINITION = """
pipeline: p
sources:
  readings: {topic: in, schema: "id BIGINT"}
  pumps: {files: {path: pumps.csv, format: csv}, schema: "id BIGINT, name STRING"}
steps:
  good: {sql: select id from readings, expect: {positive: {check: id > 0, otherwise: drop}}}
sinks: {out: {from: good, topic: out}}
"""
SOUND = "cases: {c: {given: {readings: [{id: 1}]}, expect: {sinks: {out: [{id: 1}]}}}}"


def wrong(folder: Path, text: str, definition: str = DEFINITION) -> list[str]:
    (folder / "p.yml").write_text(definition)
    (folder / "p.test.yml").write_text(textwrap.dedent(text))
    with pytest.raises(ProblemList) as error:
        read_case_file(str(folder / "p.test.yml"), {})
    return [f"{each.place.line}: {each.text}" for each in error.value]


def test_they_are_found_by_definition_by_folder_and_by_name(tmp_path: Path) -> None:
    below = tmp_path / "below"
    below.mkdir()
    for folder in (tmp_path, below):
        (folder / "p.yml").write_text(DEFINITION)
        (folder / "p.test.yml").write_text(SOUND)
    here, there = str(tmp_path / "p.test.yml"), str(below / "p.test.yml")
    assert find_files([str(tmp_path / "p.yml")]) == [here]
    assert find_files([here, here]) == [here]
    assert sorted(find_files([str(tmp_path)])) == sorted([here, there])
    assert read_case_file(here, {}).plan.pipeline.name == "p"
    with pytest.raises(ProblemList, match="write one: "):
        find_files([str(tmp_path / "other.yml")])


def test_unknown_keys_and_names_are_reported_with_the_nearest(tmp_path: Path) -> None:
    messages = wrong(
        tmp_path,
        """\
        cases:
          c:
            gven: {}
            given: {reading: []}
            expect:
              sinks: {oot: [], out: {row: []}}
              expectations: {good: {positiv: 1}}
              dead_letters: []
        """,
    )
    assert [each.partition(":")[0] for each in messages] == ["3", "4", "6", "6", "6", "7", "8"]
    assert "did you mean 'given'?" in messages[0]
    assert "did you mean 'readings'?" in messages[1]
    assert "did you mean 'out'?" in messages[2]
    assert "did you mean 'rows'?" in " ".join(messages[3:5])
    assert "did you mean 'positive'?" in messages[5]
    assert "the pipeline has no dead-letter topic" in messages[6]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a test file must be a mapping, empty"),
        ("cases: [", "this is not YAML"),
        ("cases: []", "cases must be a mapping of names"),
        ("definition: no.yml\ncases: {}", "does not exist"),
        ("pipeline: q\n" + SOUND, "choose one with `pipeline: name`"),
        ("cases: {c: {given: {}}}", "case 'c' has no expect"),
        ("cases: {c: {expect: {}}}", "case 'c' expects nothing"),
        ("cases: {c: {given: {readings: {id: 1}}, expect: {sinks: {out: []}}}}", "must be a list, not a mapping"),
        ("cases: {c: {given: {pumps: [{nmae: x}]}, expect: {sinks: {out: []}}}}", "did you mean 'name'?"),
        (
            "cases: {c: {given: {readings: [{id: five}]}, expect: {sinks: {out: []}}}}",
            "the row does not fit the schema of source 'readings': field id: expected BIGINT, found \"five\"",
        ),
        (
            "cases: {c: {given: {pumps: [{name: x, id: 1.5}]}, expect: {sinks: {out: []}}}}",
            "the row does not fit the columns of source 'pumps': field id: expected BIGINT, found 1.5",
        ),
        ("cases: {c: {given: {readings: [{id: 1, _value: x}]}, expect: {error: x}}}", "both _value and fields"),
        ("cases: {c: {given: {readings: [{_offset: -1}]}, expect: {error: x}}}", "must be an integer"),
        ("cases: {c: {given: {readings: [{_value: {hex: zz}}]}, expect: {error: x}}}", "hex of _value"),
        ("cases: {c: {expect: {sinks: {out: {rows: [], contains: []}}}}}", "has both rows and contains"),
        ("cases: {c: {expect: {sinks: {out: {count: many}}}}}", "must be an integer"),
    ],
)
def test_what_is_wrong_is_reported(tmp_path: Path, text: str, message: str) -> None:
    assert message in " ".join(wrong(tmp_path, text))


def test_an_unsound_definition_is_reported_by_its_own_lines(tmp_path: Path) -> None:
    messages, *_warnings = wrong(tmp_path, SOUND, DEFINITION.replace("select id from", "select nothing from"))
    assert messages.startswith("7: ")


def test_records_have_all_that_a_topic_gives_them(tmp_path: Path) -> None:
    (tmp_path / "p.yml").write_text(DEFINITION)
    (tmp_path / "p.test.yml").write_text("""
cases:
  c:
    given:
      readings:
        - {id: 1}
        - text
        - null
        - {_value: {hex: "00 ff"}, _key: k, _headers: {a: b}, _timestamp: 2026-01-01 12:00, _partition: 1, _offset: 7}
        - {id: 2, _partition: 1}
    expect: {sinks: {out: []}}
""")
    read = read_case_file(str(tmp_path / "p.test.yml"), {})
    source = read.plan.pipeline.sources[0]
    assert isinstance(source.origin, TopicOrigin)
    records = records_of(read.cases[0].batches[0].rows["readings"], source, source.origin, Problems())
    assert records[0] == GivenRecord(None, b'{"id": 1}', "in", 0, 0, WRITTEN_AT, ())
    assert [each.value for each in records[1:4]] == [b"text", None, b"\x00\xff"]
    assert (records[3].key, records[3].headers, records[3].timestamp.isoformat()) == (
        b"k",
        (("a", b"b"),),
        "2026-01-01T12:00:00+00:00",
    )
    assert [(each.partition, each.offset) for each in records] == [(0, 0), (0, 1), (0, 2), (1, 7), (1, 8)]
