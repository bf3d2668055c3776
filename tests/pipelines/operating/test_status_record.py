"""The status of a pipeline as a record: it returns what was published, within its limits, and refuses anything else."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.pipelines.operating.status import ExpectationStatus, FlowStatus, PipelineStatus, State
from odradek.pipelines.operating.status_record import (
    LARGEST_RECORD_BYTES,
    STALE_S,
    GraphNode,
    PublishedPipeline,
    encode,
    parse,
)

FLOW = FlowStatus("readings", batch=3, batch_ms=120.0, batches=3, read={"rigs": 30}, written={"pressure": 30})
NODES = (
    GraphNode("source/rigs", "source", "rigs", "topic rigs", (), ("rigs",)),
    GraphNode("sink/pressure", "sink", "pressure", "topic pressure", ("source/rigs",), ("pressure",)),
)
STATUS = PipelineStatus(
    "rigs", State.RUNNING, engine="standard", updated_s=1000.0, flows=(FLOW,),
    expectations=(ExpectationStatus("readings", "plausible", "quarantine", 2, 30),),
)  # fmt: skip
PUBLISHED = PublishedPipeline("host", STATUS, NODES, "rigs-dead-letters", ("standard engine",), 1000.0)


def test_a_status_is_read_as_it_was_published() -> None:
    key, value = encode(PUBLISHED)
    assert key == b"rigs@host"
    assert parse(value) == PUBLISHED


def test_a_record_has_a_bounded_size() -> None:
    flows = tuple(
        FlowStatus(f"f{i}", positions={"t": {str(p): p for p in range(10_000)}}, read={f"t{n}": n for n in range(999)})
        for i in range(300)
    )
    nodes = tuple(GraphNode(f"step/{i}", "step", f"{i}", "x" * 5000, ()) for i in range(1000))
    large = replace(PUBLISHED, status=replace(STATUS, flows=flows, note="n" * 10_000), nodes=nodes)
    _key, value = encode(large)
    assert len(value) <= LARGEST_RECORD_BYTES
    assert parse(value) is not None


def test_a_pipeline_that_publishes_nothing_is_stale_unless_it_has_ended() -> None:
    assert not PUBLISHED.is_stale(1000.0 + STALE_S)
    assert PUBLISHED.is_stale(1001.0 + STALE_S)
    assert not replace(PUBLISHED, status=replace(STATUS, state=State.STOPPED)).is_stale(10_000.0)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("version",), 2),
        (("host",), None),
        (("nodes",), 5),
        (("nodes", 0, "inputs"), ["sink/pressure"]),
        (("nodes", 1, "id"), "source/rigs"),
        (("nodes", 0, "name"), 5),
        (("nodes", 0, "more"), 5),
        (("status", "state"), "asleep"),
        (("status", "name"), ["x"]),
        (("status", "flows", 0, "batch_ms"), "long"),
        (("status", "flows", 0, "written"), {"x": "y"}),
        (("status", "expectations", 0, "rows"), None),
    ],
)
def test_what_is_not_a_status_is_refused(path: tuple[Any, ...], value: object) -> None:
    found = json.loads(encode(PUBLISHED)[1])
    place = found
    for each in path[:-1]:
        place = place[each]
    place[path[-1]] = value
    assert parse(json.dumps(found).encode()) is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)


@given(st.binary(max_size=40) | JSON.map(lambda each: json.dumps(each).encode()))
def test_hostile_values_are_refused(value: bytes) -> None:
    assert parse(value) is None
