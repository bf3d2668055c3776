"""`odradek pipeline validate | graph`: what they print, their exit codes, and how fast they are."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.cli.completion.test_command import complete

if TYPE_CHECKING:
    from pathlib import Path

    from tests.commands import Run

SOUND = """
pipeline: rigs
bootstrap_servers: ${BROKER:-127.0.0.1:9092}
warehouse: sqlite:///rigs.db
dead_letters: rigs-dead
sources:
  rigs:
    topic: rigs
    schema: |
      event_ID BIGINT, hcid BIGINT, timestamp STRING,
      sensor_readings STRUCT<pressure: DOUBLE, temperature: DOUBLE, oil_percentage: DOUBLE>
    columns: {event_time: to_timestamp(timestamp)}
    watermark: {column: event_time, delay: 1 minute}
steps:
  readings:
    sql: select hcid, event_time, sensor_readings.* from rigs
    expect: {plausible: {check: pressure BETWEEN 0 AND 1000, otherwise: quarantine}}
  per_minute:
    from: readings
    window: {column: event_time, size: 1 minute}
    by: [hcid]
    aggregate: {mean_pressure: avg(pressure), events: count(*)}
sinks:
  pressure: {from: readings, topic: pressure, key: hcid, value: [hcid, pressure]}
  table: {from: per_minute, table: per_minute, key: [hcid, window_start]}
views:
  last: {from: readings, key: hcid, order_by: event_time}
"""


@pytest.fixture
def sound(tmp_path: Path) -> str:
    (tmp_path / "pipeline.yml").write_text(SOUND)
    return str(tmp_path / "pipeline.yml")


@pytest.fixture
def wrong(tmp_path: Path) -> str:
    text = SOUND.replace("topic: pressure, key", "topic: pressure, kye").replace("key: hcid, order", "key: hcd, order")
    (tmp_path / "wrong.yml").write_text(text)
    return str(tmp_path / "wrong.yml")


def test_a_sound_definition_says_so(offline: Run, sound: str) -> None:
    ran = offline("pipeline", "validate", sound)
    assert (ran.code, ran.errors) == (0, "")
    assert ran.output == f"{sound}: rigs is valid: 1 source, 2 steps, 2 sinks, 1 view\n"


def test_everything_wrong_is_reported_with_its_line(offline: Run, wrong: str) -> None:
    ran = offline("pipeline", "validate", wrong)
    assert ran.code == 1
    lines = ran.output.splitlines()
    assert lines[0].startswith(f"{wrong}:24:")
    assert any("unknown key 'kye' of sink 'pressure'; did you mean 'key'?" in line for line in lines)
    assert any("names the column 'hcd'" in line for line in lines)
    assert ran.errors == f"odradek: error: {len(lines)} errors in {wrong}\n"


def test_problems_as_json(offline: Run, sound: str, wrong: str) -> None:
    ran = offline("pipeline", "validate", sound, wrong, "--format", "json")
    assert ran.code == 1
    good, bad = ran.rows
    assert good == {"file": sound, "pipeline": "rigs", "valid": True, "problems": []}
    assert (bad["pipeline"], bad["valid"]) == ("rigs", False)
    first = bad["problems"][0]
    assert first.keys() == {"file", "line", "column", "severity", "code", "message", "hint"}
    assert (first["file"], first["line"], first["severity"]) == (wrong, 24, "error")
    assert ran.errors == f"odradek: error: {len(bad['problems'])} errors in {wrong}\n"


def test_refusals_of_the_plan_have_their_code_and_what_to_write(offline: Run, tmp_path: Path) -> None:
    file = tmp_path / "p.yml"
    file.write_text(SOUND.replace("select hcid, event_time", "select distinct hcid, event_time"))
    ran = offline("pipeline", "validate", str(file))
    assert ran.output.startswith(f"{file}:16:17: error OP001: step 'readings' has DISTINCT, ")
    assert "; write deduplicate: {key: [" in ran.output
    report = offline("pipeline", "validate", str(file), "--format", "json").row
    assert [(each["line"], each["code"]) for each in report["problems"]] == [(16, "OP001")]


def test_warnings_alone_are_no_failure(offline: Run, sound: str, tmp_path: Path) -> None:
    (tmp_path / "w.yml").write_text(SOUND.replace("steps:", "steps:\n  idle: {sql: select hcid from rigs}"))
    ran = offline("pipeline", "validate", str(tmp_path / "w.yml"))
    assert (ran.code, ran.errors) == (0, "")
    assert "warning: no sink and no view uses the step 'idle'" in ran.output
    assert "rigs is valid" in ran.output


def test_another_engine_can_be_asked_for(offline: Run, sound: str) -> None:
    ran = offline("pipeline", "validate", sound, "--engine", "realtime")
    assert ran.code == 1
    assert "the realtime engine does not run step 'per_minute': it is not plain SQL over each row" in ran.output


def test_the_environment_reaches_the_definition(offline: Run, tmp_path: Path) -> None:
    (tmp_path / "e.yml").write_text(SOUND.replace("BROKER:-127.0.0.1:9092", "TEST_BROKER"))
    assert (
        "the environment variable TEST_BROKER is not set"
        in offline("pipeline", "validate", str(tmp_path / "e.yml")).output
    )
    assert offline("pipeline", "validate", str(tmp_path / "e.yml"), TEST_BROKER="h:1").code == 0


def test_pipelines_of_a_python_file(offline: Run, tmp_path: Path) -> None:
    (tmp_path / "two.py").write_text(
        "from odradek.pipelines import Pipeline\n"
        + "".join(
            f'{name} = Pipeline("{name}")\n{name}.source("s", topic="t", format="text")\n'
            f'{name}.sink("o", from_="s", topic="u")\n'
            for name in ("one", "two")
        )
    )
    file = str(tmp_path / "two.py")
    assert [row["pipeline"] for row in offline("pipeline", "validate", file, "--format", "json").rows] == ["one", "two"]
    assert "defines one, two; choose one with --pipeline" in offline("pipeline", "graph", file).errors
    assert offline("pipeline", "graph", file, "--pipeline", "two").output.startswith("two  ")
    assert "defines no pipeline three" in offline("pipeline", "graph", file, "--pipeline", "three").errors


def test_a_file_that_is_not_there(offline: Run) -> None:
    ran = offline("pipeline", "validate", "nowhere.yml")
    assert ran.code == 1
    assert "nowhere.yml:1:1: error: the file cannot be read: No such file or directory; check the path" in ran.output


def test_the_graph_as_text_json_and_diagram(offline: Run, sound: str) -> None:
    text = offline("pipeline", "graph", sound)
    assert (text.code, text.errors) == (0, "")
    assert "● rigs  topic rigs\n└─ ○ readings  sql, expects plausible\n" in text.output
    assert all(len(line) <= 80 for line in text.output.splitlines())
    nodes = offline("pipeline", "graph", sound, "--format", "json").row["nodes"]
    assert [node["id"] for node in nodes] == [
        "source/rigs", "step/readings", "step/per_minute", "view/last", "sink/pressure", "sink/table",
    ]  # fmt: skip
    assert [node["level"] for node in nodes] == [0, 1, 2, 2, 2, 3]


def test_what_is_wrong_is_not_drawn(offline: Run, wrong: str) -> None:
    ran = offline("pipeline", "graph", wrong)
    assert (ran.code, ran.output) == (1, "")
    assert ran.errors.count("\n") == 1
    assert f"(see `odradek pipeline validate {wrong}`)" in ran.errors


def test_a_missing_extra_is_one_line(sound: str) -> None:
    program = (
        "import importlib.util, sys\n"
        "find = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, *rest: None if name == 'sqlglot' else find(name, *rest)\n"
        f"from odradek.cli.main import run; sys.exit(run(['pipeline', 'validate', {sound!r}]))"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert ran.stderr == "odradek: error: pipelines need sqlglot; install them with: pip install 'odradek[pipelines]'\n"


def test_commands_and_options_are_completed(offline: Run) -> None:
    assert complete(offline, "odradek pipeline v") == ["validate"]
    assert complete(offline, "odradek pipeline validate --engine r") == ["realtime"]


def test_validate_takes_less_than_a_second_and_no_spark(sound: str) -> None:
    """In seconds of processor, the least of several: other tests run beside this one and make the machine slower."""
    program = (
        "import sys; from odradek.cli.main import run; "
        f"code = run(['pipeline', 'validate', {sound!r}]); "
        "names = {'pyspark', 'pandas', 'pyarrow', 'confluent_kafka', 'rich', 'fastavro'}; "
        "print(sorted(names & {name.split('.')[0] for name in sys.modules})); sys.exit(code)"
    )

    def once() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        ran = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert ran.stdout.splitlines()[-1] == "[]"
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    once()
    assert min(once() for _ in range(5)) < 1.0


def test_json_lines_are_json(offline: Run, wrong: str) -> None:
    for line in offline("pipeline", "validate", wrong, "--format", "json").output.splitlines():
        json.loads(line)
