"""Every example of the package is complete and fits together; a folder with the same files is an example too."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from odradek.examples.folders import (
    Example,
    NoSuchExample,
    copy_example,
    find_example,
    packaged_examples,
)
from odradek.examples.live_view.definition import Rows
from odradek.examples.live_view.loading import load_view
from odradek.examples.simulator.loading import load_simulation
from odradek.pipelines.definition.model import TopicOrigin, TopicTarget
from odradek.pipelines.planning.loading import load_yaml
from odradek.pipelines.trial.parsing import read_case_file

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("example", packaged_examples(), ids=lambda example: example.name)
def test_the_files_of_an_example_fit_together(example: Example) -> None:
    pipeline = load_yaml(example.definition, {}).require()
    simulation, view = load_simulation(example.simulator, {}), load_view(example.view, {})
    read = {topic for each in pipeline.sources if isinstance(each.origin, TopicOrigin) for topic in each.origin.topics}
    written = {sink.target.topic for sink in pipeline.sinks if isinstance(sink.target, TopicTarget)}
    assert simulation.topic == view.topics[0]
    assert simulation.topic in read
    assert set(view.topics[1:]) <= {*written, pipeline.dead_letters}
    shown = {panel.content.view for panel in view.panels if isinstance(panel.content, Rows)}
    assert shown <= {each.name for each in pipeline.views}
    assert read_case_file(str(example.folder / "pipeline.test.yml"), {}).cases
    assert example.summary.endswith(".")


def test_a_folder_is_an_example_if_it_has_the_files(tmp_path: Path) -> None:
    copy_example(find_example("rigs"), tmp_path / "wells", {"rigs": "wells"})
    found = find_example(str(tmp_path / "wells"))
    assert found.name == "wells"
    assert load_simulation(found.simulator, {}).topic == "wells"
    (tmp_path / "wells" / "view.yml").unlink()
    with pytest.raises(NoSuchExample, match=r"has no view\.yml, which"):
        find_example(str(tmp_path / "wells"))


def test_a_copy_leaves_out_what_runs_have_written(tmp_path: Path) -> None:
    source = tmp_path / "source"
    copy_example(find_example("starter"), source)
    for name in ("__pycache__", "checkpoints", "data"):
        (source / name).mkdir()
        (source / name / "x").write_text("x")
    (source / "warehouse.db").write_text("x")
    assert copy_example(find_example(str(source)), tmp_path / "copy") == [
        "README.md", "orders.jsonl", "pipeline.test.yml", "pipeline.yml", "simulator.yml", "view.yml"
    ]  # fmt: skip
