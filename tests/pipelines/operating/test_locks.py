"""A lock on shared storage: one holder at a time, which loses it if it does not renew it."""

from __future__ import annotations

import dataclasses
import json
import threading
from typing import TYPE_CHECKING

import pytest

from odradek.pipelines.operating import locks
from odradek.pipelines.operating.locks import LEASE_S, Holder, Lease, Taken, leased
from odradek.pipelines.operating.small_files import LocalFiles

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NAME = "checkpoint.lock"


class Clock:
    """A clock that only advances with the pauses of those who wait."""

    def __init__(self) -> None:
        self.now_s = 1000.0
        self.each_pause: Callable[[], None] = lambda: None

    def pause(self, seconds: float) -> None:
        self.now_s += seconds
        self.each_pause()


@pytest.fixture
def files(tmp_path: Path) -> LocalFiles:
    return LocalFiles(tmp_path / "shared")


@pytest.fixture
def clock() -> Clock:
    return Clock()


def lease(files: LocalFiles, clock: Clock, owner: str) -> Lease:
    return Lease(files, NAME, owner, lambda: clock.now_s, clock.pause)


def holder_of(files: LocalFiles) -> Holder | None:
    return Lease(files, NAME, "a reader").holder()


def move_to_other_machine(files: LocalFiles) -> None:
    """Changes the holder's host, because a dead process of this machine is recognized by its id."""
    holder = holder_of(files)
    assert holder is not None
    files.replace(NAME, json.dumps(dataclasses.asdict(dataclasses.replace(holder, host="elsewhere"))))


def test_a_lock_has_one_holder(files: LocalFiles, clock: Clock) -> None:
    first, second = lease(files, clock, "first"), lease(files, clock, "second")
    first.take()
    with pytest.raises(Taken) as taken:
        second.take()
    assert taken.value.owner == "first"
    first.release()
    second.take()
    first.release()  # it is not the first one's any more
    with pytest.raises(Taken):
        lease(files, clock, "third").take()


def test_a_lock_that_is_not_renewed_is_taken_over(files: LocalFiles, clock: Clock) -> None:
    first, second = lease(files, clock, "first"), lease(files, clock, "second")
    first.take()
    move_to_other_machine(files)
    clock.now_s += LEASE_S
    second.take()
    first.renew()
    assert first.is_lost
    second.renew()
    assert not second.is_lost


def test_a_holder_whose_clock_is_behind_keeps_its_lock(files: LocalFiles, clock: Clock) -> None:
    first, second = lease(files, clock, "first"), lease(files, clock, "second")
    first.take()
    clock.now_s += 10 * LEASE_S
    clock.each_pause = first.renew
    with pytest.raises(Taken):
        second.take()


def test_a_lock_that_is_being_renewed_is_not_taken(files: LocalFiles, clock: Clock) -> None:
    """Other storage replaces a file by removing it and renaming another."""
    first, second = lease(files, clock, "first"), lease(files, clock, "second")
    first.take()
    files.remove(NAME)
    clock.each_pause = lambda: files.replace(NAME, first._text())
    with pytest.raises(Taken) as taken:
        second.take()
    assert taken.value.owner == "first"


def test_of_two_that_take_over_at_once_the_later_one_has_it(files: LocalFiles, clock: Clock) -> None:
    dead, first, second = (lease(files, clock, name) for name in ("dead", "first", "second"))
    dead.take()
    move_to_other_machine(files)
    clock.now_s += LEASE_S

    def overtake() -> None:
        if (holder := holder_of(files)) is not None and holder.owner == "first":
            clock.each_pause = lambda: None
            files.replace(NAME, second._text())

    clock.each_pause = overtake
    with pytest.raises(Taken) as taken:
        first.take()
    assert taken.value.owner == "second"


def test_the_lock_of_a_dead_process_of_this_machine_is_taken_at_once(files: LocalFiles, clock: Clock) -> None:
    lease(files, clock, "dead").take()
    holder = holder_of(files)
    assert holder is not None
    files.replace(NAME, json.dumps(dataclasses.asdict(dataclasses.replace(holder, began="before the last boot"))))
    before_s = clock.now_s
    lease(files, clock, "next").take()
    assert clock.now_s - before_s <= locks.SETTLE_S


def test_a_holder_learns_that_it_has_lost_the_lock(files: LocalFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "RENEW_S", 0.01)
    is_lost = threading.Event()
    with leased(files, NAME, "first", is_lost.set):
        move_to_other_machine(files)
        holder = holder_of(files)
        assert holder is not None
        files.replace(NAME, json.dumps(dataclasses.asdict(dataclasses.replace(holder, token="of another"))))
        assert is_lost.wait(60)
    assert files.read(NAME) is not None  # the other's lock stays
    files.remove(NAME)
    with leased(files, NAME, "second", is_lost.set):
        pass
    assert files.read(NAME) is None
