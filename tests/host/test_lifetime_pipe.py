"""The pipe that ends a child process with its parent."""

import os
import subprocess
import sys
import threading

import pytest

from odradek.host.lifetime_pipe import LifetimePipe, call_when_parent_ends
from tests.alone import call_alone, open_descriptors

CHILD = "import os, sys; os.read(int(sys.argv[1]), 1)"


def test_child_ends_when_its_pipe_is_closed() -> None:
    pipe = LifetimePipe()
    with pipe.opened() as watched:
        child = subprocess.Popen([sys.executable, "-c", CHILD, str(watched)], pass_fds=[watched])
    assert child.poll() is None
    pipe.close()
    assert child.wait(30) == 0


def test_start_that_fails_leaves_no_descriptor_open() -> None:
    def fail() -> None:
        before = open_descriptors()
        with pytest.raises(FileNotFoundError), LifetimePipe().opened() as watched:
            subprocess.Popen(["/no/such/program"], pass_fds=[watched])
        assert open_descriptors() == before

    call_alone(fail)


def test_second_child_gets_a_pipe_of_its_own() -> None:
    def open_twice() -> None:
        pipe, before = LifetimePipe(), open_descriptors()
        for _ in range(2):
            with pipe.opened():
                pass
        assert len(open_descriptors()) == len(before) + 1, "the write end of the second pipe"
        pipe.close()
        pipe.close()
        assert open_descriptors() == before

    call_alone(open_twice)


def test_function_is_called_when_the_parent_ends() -> None:
    is_called = threading.Event()
    read_end, write_end = os.pipe()
    call_when_parent_ends(read_end, is_called.set)
    assert not is_called.is_set()
    os.close(write_end)
    assert is_called.wait(30)
    os.close(read_end)
