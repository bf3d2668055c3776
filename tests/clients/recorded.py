"""Answers of Apache Kafka, kept in `expected`; `make oracle ARGS=--update` writes them again."""

import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.clients.scenario.steps import Json, Step

EXPECTED = Path(__file__).parent / "expected"
SETTINGS = EXPECTED / "topic_settings.json"
UNRECORDED = "not recorded"


def recorded_answers(chapter: str, steps: Sequence[Step], *, may_miss: bool = False) -> list[Json]:
    """The recorded answers to the steps of a chapter, in their order; UNRECORDED for a new step if it `may_miss`."""
    path = _transcript(chapter)
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    found = dict(zip(_numbered([row["step"] for row in rows]), (row["answer"] for row in rows), strict=True))
    wanted = _numbered([step.name for step in steps])
    if not may_miss:
        assert list(found) == wanted, f"{path} has other steps than the scenario: run make oracle ARGS=--update"
    return [found.get(step, UNRECORDED) for step in wanted]


def record_answers(chapter: str, steps: Sequence[Step], answers: Sequence[Json]) -> None:
    rows = [{"step": step.name, "answer": answer} for step, answer in zip(steps, answers, strict=True)]
    _replace(_transcript(chapter), "".join(json.dumps(row) + "\n" for row in rows))


def recorded_settings() -> dict[str, Json]:
    settings: dict[str, Json] = json.loads(SETTINGS.read_text())
    return settings


def record_settings(settings: Mapping[str, Json]) -> None:
    """One setting per line, sorted by name."""
    lines = [f"  {json.dumps(name)}: {json.dumps(settings[name])}" for name in sorted(settings)]
    _replace(SETTINGS, "{\n" + ",\n".join(lines) + "\n}\n")


def _replace(path: Path, text: str) -> None:
    """Rename a complete file into place: other drivers may read the answers concurrently."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(text)
    temporary.replace(path)


def _transcript(chapter: str) -> Path:
    return EXPECTED / "scenario" / f"{chapter}.jsonl"


def _numbered(names: Sequence[str]) -> list[tuple[str, int]]:
    """Each name with how often it occurred before: a step may be repeated."""
    seen: Counter[str] = Counter()
    numbered = []
    for name in names:
        numbered.append((name, seen[name]))
        seen[name] += 1
    return numbered
