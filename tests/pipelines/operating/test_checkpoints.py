"""Checkpoints as Spark 4.3 writes them, and Odradek's files next to them."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from odradek.pipelines.definition.model import Pipeline, Start
from odradek.pipelines.definition.vocabulary import StartAt
from odradek.pipelines.operating.checkpoints import Checkpoints
from odradek.pipelines.operating.fingerprints import Fingerprints
from odradek.pipelines.operating.locks import Taken, held
from odradek.pipelines.operating.small_files import LocalFiles

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def kept(tmp_path: Path) -> Checkpoints:
    return Checkpoints(Pipeline("p", checkpoints=str(tmp_path / "checkpoints")))


def write_batch(kept: Checkpoints, flow: str, number: int, offsets: object, *, is_finished: bool = True) -> None:
    folder = kept.flow_folder(flow)
    for name in ("offsets", "commits"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "metadata").write_text('{"id":"q-1"}')
    about = json.dumps({"batchWatermarkMs": 0, "batchTimestampMs": 1000 + number, "conf": {}})
    (folder / "offsets" / str(number)).write_text(f"v1\n{about}\n{json.dumps(offsets)}")
    (folder / "offsets" / f".{number}.crc").write_bytes(b"crc")
    if is_finished:
        (folder / "commits" / str(number)).write_text('v1\n{"nextBatchWatermarkMs":0}')


def test_a_flow_is_as_far_as_its_last_batch(kept: Checkpoints) -> None:
    for number in range(9, 12):
        write_batch(kept, "rigs", number, {"rigs": {"0": number * 10, "1": 5}}, is_finished=number < 11)
    (kept.folder / "spark.log").write_text("")
    (flow,) = kept.flows()
    assert (flow.flow, flow.query, flow.begun, flow.finished, flow.time_ms) == ("rigs", "q-1", 11, 10, 1011)
    assert flow.positions == {"rigs": {"0": 110, "1": 5}}
    entry = kept.entry_of("rigs", 9)
    assert entry is not None
    assert (entry.positions, entry.ambiguous) == ({"rigs": {"0": 90, "1": 5}}, ())
    assert kept.entry_of("rigs", 3) is None
    assert kept.begun() == {"rigs"}


def test_the_offsets_at_which_a_flow_began_are_read(kept: Checkpoints) -> None:
    assert kept.first_positions("rigs") == {}
    for number, text in enumerate(('\0v1\n{"rigs":{"0":7}}', '\0v1\n{"pumps":{"1":3}}')):
        folder = kept.flow_folder("rigs") / "sources" / str(number)
        folder.mkdir(parents=True)
        (folder / "0").write_text(text)
    assert kept.first_positions("rigs") == {"rigs": {"0": 7}, "pumps": {"1": 3}}


def test_sources_of_one_topic_at_different_offsets_are_noticed(kept: Checkpoints) -> None:
    write_batch(kept, "both", 0, {"rigs": {"0": 5}})
    path = kept.flow_folder("both") / "offsets" / "0"
    path.write_text(path.read_text() + '\n{"rigs":{"0":9},"pumps":{"0":1}}')
    entry = kept.entry_of("both", 0)
    assert entry is not None
    assert entry.ambiguous == ("rigs",)


def test_a_flow_that_never_began_a_batch_has_no_checkpoint(kept: Checkpoints) -> None:
    (kept.folder / "rigs" / "offsets").mkdir(parents=True)
    assert kept.flows() == []


def test_streams_of_files_have_no_offsets_of_topics(kept: Checkpoints) -> None:
    write_batch(kept, "files", 0, {"logOffset": 3})
    (flow,) = kept.flows()
    assert flow.positions == {}


def test_a_flow_is_forgotten_as_a_whole(kept: Checkpoints) -> None:
    write_batch(kept, "one", 0, {"a": {"0": 1}})
    write_batch(kept, "two", 0, {"a": {"0": 1}})
    kept.forget("one")
    assert [each.flow for each in kept.flows()] == ["two"]


@pytest.mark.parametrize(
    "start",
    [Start(StartAt.LATEST), Start(StartAt.TIME, 1234), Start(StartAt.OFFSETS, offsets={"a": {0: 1, 10: 2}})],
    ids=lambda start: str(start.at),
)
def test_where_to_begin_is_noted(kept: Checkpoints, start: Start) -> None:
    assert kept.starts() == {}
    kept.note_start(["one", "two"], start)
    kept.note_start(["three"], Start(StartAt.EARLIEST))
    assert kept.starts() == {"one": start, "two": start, "three": Start(StartAt.EARLIEST)}
    kept.note_start(["one", "three"], None)
    assert kept.starts() == {"two": start}
    kept.note_start(["two"], None)
    assert not (kept.folder / "start.json").exists()


def test_a_start_is_for_once(kept: Checkpoints) -> None:
    kept.note_start(["one", "two"], Start(StartAt.LATEST))
    write_batch(kept, "one", 0, {"a": {"0": 1}})
    assert kept.starts() == {"two": Start(StartAt.LATEST)}
    kept.drop_used_starts()
    kept.forget("one")
    assert kept.starts() == {"two": Start(StartAt.LATEST)}


def test_what_cannot_be_removed_is_reported_and_is_no_checkpoint(
    kept: Checkpoints, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    write_batch(kept, "one", 0, {"a": {"0": 1}})
    with monkeypatch.context() as patched:
        patched.setattr(shutil, "rmtree", refuse)
        with pytest.raises(PermissionError):
            kept.forget("one")
    assert kept.flows() == []
    write_batch(kept, "one", 0, {"a": {"0": 1}})
    kept.forget("one")
    assert list(kept.folder.iterdir()) == []


def test_notes_about_a_shared_folder_are_kept_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    pipeline = Pipeline("p", checkpoints="hdfs://host/checkpoints")
    found = Fingerprints("standard", {"rigs": {"source rigs": "topics rigs"}}, {"sink a": "rigs"})
    kept = Checkpoints(pipeline, LocalFiles(tmp_path / "shared"))
    assert kept.recorded() is None
    kept.store_definition(found.as_object())
    assert kept.recorded() == found.as_object()
    assert kept.begun() == set()
    (tmp_path / "shared" / "rigs" / "offsets").mkdir(parents=True)
    assert kept.begun() == {"rigs"}


def test_one_at_a_time_is_at_a_checkpoint(kept: Checkpoints) -> None:
    with held(kept.lock, "pid 1"), pytest.raises(Taken, match="pid 1"), held(kept.lock, "pid 2"):
        pass
    with held(kept.lock, "pid 3"):
        assert kept.lock.read_text() == "pid 3"
