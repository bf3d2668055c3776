"""Locks: of one machine one holder at a time, on shared storage the last one that has claimed it."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import pytest

from odradek.pipelines.operating import locks
from odradek.pipelines.operating.locks import Taken, claimed, held
from odradek.pipelines.operating.small_files import LocalFiles

if TYPE_CHECKING:
    from pathlib import Path

NAME = "checkpoint.lock"


def test_a_lock_of_a_machine_has_one_holder(tmp_path: Path) -> None:
    with held(tmp_path / NAME, "first"), pytest.raises(Taken) as taken, held(tmp_path / NAME, "second"):
        pass
    assert taken.value.owner == "first"
    with held(tmp_path / NAME, "third"):
        pass


def test_the_last_claim_counts_and_the_one_before_learns_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "CHECK_S", 0.01)
    files, is_first_lost, is_second_lost = LocalFiles(tmp_path), threading.Event(), threading.Event()
    with claimed(files, NAME, "first", is_first_lost.set, print):
        with claimed(files, NAME, "second", is_second_lost.set, print):
            assert is_first_lost.wait(60)
            assert (files.read(NAME) or "").startswith("second ")
        assert files.read(NAME) is None
    assert not is_second_lost.is_set()


def test_a_claim_of_another_stays(tmp_path: Path) -> None:
    files = LocalFiles(tmp_path)
    with claimed(files, NAME, "first", lambda: None, print):
        files.replace(NAME, "of another")
    assert files.read(NAME) == "of another"


def test_a_claim_that_is_found_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "CHECK_S", 0.05)
    files, said = LocalFiles(tmp_path), list[str]()
    with claimed(files, NAME, "pid 1 on a", lambda: None, said.append):
        assert said == []
        began_s = time.monotonic()
        with claimed(files, NAME, "pid 2 on b", lambda: None, said.append):
            assert time.monotonic() - began_s >= 2 * locks.CHECK_S
    assert said == ["the checkpoint was in use by pid 1 on a: waiting 0.1 s, in which that run stops"]


def test_a_stop_ends_the_wait_and_gives_the_claim_back(tmp_path: Path) -> None:
    files = LocalFiles(tmp_path)
    files.replace(NAME, "pid 1 on a 0")
    began_s = time.monotonic()
    with (
        pytest.raises(Taken, match=r"^pid 1 on a$"),
        claimed(files, NAME, "pid 2 on b", lambda: None, print, lambda: True),
    ):
        pass
    assert time.monotonic() - began_s < locks.CHECK_S
    assert files.read(NAME) is None


def test_a_claim_that_is_lost_while_it_waits_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "CHECK_S", 0.01)
    files = LocalFiles(tmp_path)
    files.replace(NAME, "pid 1 on a 0")

    def third(_text: str) -> None:
        files.replace(NAME, "pid 3 on c 0")

    with pytest.raises(Taken, match=r"^pid 3 on c$"), claimed(files, NAME, "pid 2 on b", lambda: None, third):
        pass
    assert files.read(NAME) == "pid 3 on c 0"
