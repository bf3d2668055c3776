"""One attempt to run a pipeline as a child process: what it prints, and what stays open after it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from odradek.pipelines.operating.attempts import Attempt
from tests.alone import call_alone, open_descriptors

if TYPE_CHECKING:
    from odradek.pipelines.operating.events import Event

PRINTS = "print('hello')"


def test_line_of_the_child_becomes_a_note_and_nothing_stays_open() -> None:
    def run() -> None:
        before = open_descriptors()
        with Attempt([sys.executable, "-c", PRINTS]) as attempt:
            events: list[Event] = []
            while not attempt.is_over:
                events += attempt.poll(30.0)
            events += attempt.poll(0.0)
            assert attempt.wait() == 0
        assert [event["text"] for event in events] == ["hello"]
        assert open_descriptors() == before

    call_alone(run)


def test_start_that_fails_leaves_no_descriptor_open() -> None:
    def run() -> None:
        before = open_descriptors()
        with pytest.raises(FileNotFoundError), Attempt(["/no/such/program"]):
            pass
        assert open_descriptors() == before

    call_alone(run)
