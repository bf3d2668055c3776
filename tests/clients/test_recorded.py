"""Recorded answers belong to the steps of the scenario, and are written as they are read."""

from pathlib import Path

import pytest

from tests.clients import recorded
from tests.clients.recorded import UNRECORDED, record_answers, record_settings, recorded_answers, recorded_settings
from tests.clients.scenario.steps import Step

STEPS = [Step("list", "list_topics"), Step("grow", "create_partitions"), Step("list", "list_topics")]
ANSWERS = [["a"], {"error": "NONE"}, ["a", "\x00\xff"]]


@pytest.fixture(autouse=True)
def expected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "scenario").mkdir()
    monkeypatch.setattr(recorded, "EXPECTED", tmp_path)
    monkeypatch.setattr(recorded, "SETTINGS", tmp_path / "topic_settings.json")
    return tmp_path


def test_answers_are_read_as_they_were_recorded() -> None:
    record_answers("chapter", STEPS, ANSWERS)
    assert recorded_answers("chapter", STEPS) == ANSWERS


def test_changed_steps_are_refused_until_they_are_recorded() -> None:
    record_answers("chapter", STEPS, ANSWERS)
    changed = [*STEPS, Step("list", "list_topics")]
    with pytest.raises(AssertionError, match="make oracle ARGS=--update"):
        recorded_answers("chapter", changed)
    assert recorded_answers("chapter", changed, may_miss=True) == [*ANSWERS, UNRECORDED]


def test_a_recording_replaces_the_file_as_a_whole(expected: Path) -> None:
    """Drivers that run concurrently read either the former answers or the new ones, never a part of them."""
    path = expected / "scenario" / "chapter.jsonl"
    record_answers("chapter", STEPS, ANSWERS)
    former = path.stat().st_ino
    record_answers("chapter", STEPS, ANSWERS)
    assert path.stat().st_ino != former
    assert [*path.parent.iterdir()] == [path]


def test_settings_are_read_as_they_were_recorded() -> None:
    settings = {"b": {"value": "1"}, "a": {"value": None}}
    record_settings(settings)
    assert recorded_settings() == settings
