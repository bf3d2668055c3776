"""Records for tests of the live view."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

from odradek.examples.folders import find_example
from odradek.examples.live_view.loading import load_view
from odradek.examples.live_view.model import LiveViewModel
from odradek.examples.live_view.records import SeenRecord

RIGS = load_view(find_example("rigs").view, {})
CARDS = load_view(str(Path(__file__).parents[1] / "cards" / "view.yml"), {})
BEGAN_S = 1_800_000_000.0


def iso(time_s: float) -> str:
    return datetime.fromtimestamp(time_s, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def record(topic: str, key: str = "7", headers: dict[str, object] | None = None, **columns: object) -> SeenRecord:
    return SeenRecord(topic, key.encode(), json.dumps(columns).encode(), headers or {})


def warning(pump: int, rule: str, reported_s: float | None = None, **rest: object) -> SeenRecord:
    if reported_s is not None:
        rest["reported_at"] = iso(reported_s)
    return record("warnings", str(pump), None, hcid=pump, rule=rule, **rest)


def reading(pump: str, source: str | None = None) -> SeenRecord:
    return record("pressure", pump, {} if source is None else {"source": source.encode()})


def dead_letter(reason: str, source: str | None = None) -> SeenRecord:
    headers: dict[str, object] = {"odradek-reason": f"{reason}: details".encode()}
    return record("rigs-dead-letters", headers={**headers, **({} if source is None else {"source": source.encode()})})


def rigs_model() -> LiveViewModel:
    return LiveViewModel(RIGS, BEGAN_S)
