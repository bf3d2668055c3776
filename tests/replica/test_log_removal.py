"""Removal of renamed directories: one that cannot be removed does not keep the others, and a stop ends it."""

import errno

import pytest

from odradek.replica.log_removal import remove_trees
from tests.simulation.simulated_host import Simulation


def test_a_path_that_cannot_be_removed_is_logged_and_the_others_are_removed(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    simulation = Simulation(0)
    disk = simulation.disk
    for path in ("/data/a-delete", "/data/b-delete", "/data/c-delete"):
        disk.make_directories(path)
    remove_tree = disk.remove_tree

    def refuse_one(path: str) -> None:
        if path == "/data/b-delete":
            raise PermissionError(errno.EACCES, "not permitted", path)
        remove_tree(path)

    monkeypatch.setattr(disk, "remove_tree", refuse_one)
    remove_trees(disk, ["/data/a-delete", "/data/gone-delete", "/data/b-delete", "/data/c-delete"], lambda: False)
    assert disk.list_directory("/data") == ["b-delete"]
    assert caplog.messages == ["a deleted partition could not be removed: the next start removes it"]
    caplog.clear()
    simulation.close()


def test_no_path_is_removed_after_the_broker_has_begun_to_stop() -> None:
    simulation = Simulation(0)
    disk = simulation.disk
    paths = [f"/data/{number}-delete" for number in range(4)]
    for path in paths:
        disk.make_directories(path)
    remove_trees(disk, paths, lambda: len(disk.list_directory("/data")) == 2)
    assert disk.list_directory("/data") == ["2-delete", "3-delete"]
    simulation.close()
