"""One attempt to run a pipeline as a child process: what it prints, and what stays open after it.

Descriptors are counted in a process of its own: clients of other tests open and close theirs in threads.
"""

from __future__ import annotations

import subprocess
import sys

PREPARED = """
import os, sys
from odradek.pipelines.operating.attempts import Attempt

def open_descriptors():
    return set(os.listdir("/dev/fd"))

before = open_descriptors()
"""

PRINTS = """
with Attempt([sys.executable, "-c", "print('hello')"]) as attempt:
    events = []
    while not attempt.is_over:
        events += attempt.poll(30.0)
    events += attempt.poll(0.0)
    assert attempt.wait() == 0
assert [event["text"] for event in events] == ["hello"], events
"""

CANNOT_START = """
try:
    with Attempt(["/no/such/program"]):
        pass
except FileNotFoundError:
    pass
else:
    raise AssertionError("the program has started")
"""

NOTHING_STAYS_OPEN = """
assert open_descriptors() == before, open_descriptors() ^ before
"""


def run_alone(steps: str) -> None:
    script = PREPARED + steps + NOTHING_STAYS_OPEN
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


def test_line_of_the_child_becomes_a_note_and_nothing_stays_open() -> None:
    run_alone(PRINTS)


def test_start_that_fails_leaves_no_descriptor_open() -> None:
    run_alone(CANNOT_START)
