"""Whatever is written to the status topic: a record is refused, or the pages of all pipelines can be shown."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from odradek.console.models import Pipelines
from odradek.console.settings import ConsoleSettings
from odradek.console.views.overview import columns
from odradek.console.views.pipelines import CHARTS, pipeline_row, pipeline_view
from odradek.console.web.rendering import Renderer, event
from odradek.console.web.safety import Tokens
from odradek.pipelines.operating.status_record import LARGEST_RECORD_BYTES, LONGEST_TEXT, MOST_FLOWS, encode, parse
from tests.console.test_pipelines import published, take

DOCUMENT: dict[str, Any] = json.loads(encode(published("p", 1000.0, 10))[1])
HOSTILE: st.SearchStrategy[Any] = st.sampled_from(
    [
        10**400, -(10**30), 2**63, 1e999, -1e999, float("nan"), 5e-324, -1, 0, True, None, "", "x", "\ud800", "\0", [],
        [[]], {}, {"a": 10**400}, {"a": "x"}, {"a": 1}, [{}], "0001-01-01T00:00:00", "9999-12-31T23:59:59-23:59",
        "1e999",
    ]
)  # fmt: skip
SCALARS = HOSTILE | st.integers() | st.floats() | st.text(max_size=5) | st.booleans() | st.none()
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
Path = tuple[str | int, ...]


def paths_of(document: Any, before: Path = ()) -> list[Path]:
    children = document.items() if isinstance(document, dict) else enumerate(document)
    found: list[Path] = []
    for key, value in children:
        found.append((*before, key))
        if isinstance(value, dict | list):
            found += paths_of(value, (*before, key))
    return found


def changed(document: dict[str, Any], changes: list[tuple[Path, Any]]) -> dict[str, Any]:
    result = copy.deepcopy(document)
    for path, value in changes:
        target: Any = result
        try:
            for each in path[:-1]:
                target = target[each]
            target[path[-1]] = value
        except (KeyError, IndexError, TypeError):  # another change has replaced what leads to it
            continue
    return result


CHANGES = st.lists(st.tuples(st.sampled_from(paths_of(DOCUMENT)), JSON), min_size=1, max_size=3)
RENDERER = Renderer(Tokens(), ConsoleSettings(), "127.0.0.1:9092")


def show_pages(pipelines: Pipelines) -> None:
    rows = [pipeline_row(known, 1010.0) for known in pipelines.all()]
    RENDERER.fragment("pipelines_table.html", rows=rows, trouble="").encode()
    for known in pipelines.all():
        view = pipeline_view(known, {}, 1010.0)
        RENDERER.fragment("pipeline_panel.html", view=view, trouble="").encode()
        " ".join(view.facts).encode()
        data = event("samples", columns(known.samples.since(0), CHARTS)).decode().partition("data: ")[2]
        json.loads(data, parse_constant=pytest.fail)


def take_and_show(document: Any) -> None:
    value = json.dumps(document).encode()
    status = parse(value)
    pipelines = Pipelines()
    key = b"p@machine-7" if status is None else status.key.encode()
    take(pipelines, key, json.dumps(DOCUMENT).encode())
    for _ in range(2):
        take(pipelines, key, value)
    show_pages(pipelines)


@given(CHANGES)
@example([(("status", "flows", 0, "lag"), {"a": 10**400})])
@example([(("status", "running_since_s"), "x")])
@example([(("status", "flows", 0, "processed_per_s"), float("nan"))])
@example([(("status", "flows", 0, "batch_ms"), float("inf"))])
@example([(("status", "flows", 0, "watermark"), [])])
@example([(("status", "flows", 0, "watermark"), "9999-12-31T23:59:59-23:59")])
@example([(("status", "flows", 0, "read"), [])])
@example([(("status", "note"), "\ud800")])
@example([(("published_s",), 10**400)])
@example([(("nodes", 0, "inputs"), [[]])])
@settings(max_examples=300)
def test_a_changed_status_is_refused_or_shown(changes: list[tuple[Path, Any]]) -> None:
    take_and_show(changed(DOCUMENT, changes))


@given(JSON)
def test_any_document_is_refused_or_shown(document: Any) -> None:
    take_and_show(document)


def test_a_status_larger_than_any_that_is_published_is_refused_and_long_texts_are_cut() -> None:
    """A compressed record of 1 MB holds much more, and many pages show the text."""
    status = DOCUMENT["status"]
    assert parse(json.dumps({**DOCUMENT, "facts": ["x" * LARGEST_RECORD_BYTES]}).encode()) is None
    for name in ("name", "engine"):
        assert parse(json.dumps({**DOCUMENT, "status": {**status, name: "x" * 100_000}}).encode()) is None
    long = {**status, "note": "x" * 100_000, "last_error": "x" * 100_000}
    found = parse(json.dumps({**DOCUMENT, "status": {**long, "flows": status["flows"] * 500}}).encode())
    assert found is not None
    assert (len(found.status.note), len(found.status.last_error or "")) == (LONGEST_TEXT, LONGEST_TEXT)
    assert len(found.status.flows) == MOST_FLOWS


def test_a_graph_with_very_many_edges_is_not_drawn() -> None:
    """Each node reads all before it."""
    node = {"kind": "step", "name": "n", "detail": "", "topics": []}
    graph = [{**node, "id": str(number), "inputs": [str(each) for each in range(number)]} for number in range(300)]
    status = parse(json.dumps({**DOCUMENT, "nodes": graph}).encode())
    assert status is not None
    pipelines = Pipelines()
    take(pipelines, *encode(status))
    (known,) = pipelines.all()
    assert pipeline_view(known, {}, 1010.0).drawing is None
