"""Brokers of `odradek.testing` as forks: a broker spends most of its start on importing modules.

`tests/testing`, `tests/deploy` and others start brokers as users do.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from odradek.local.running_broker import RunningBroker, broker_environment
from tests.forks.client import OF_BROKERS, fork_server

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Sequence

INTERPRETER = [sys.executable, "-m", "odradek"]
start_alone = RunningBroker._start_process


def start_forked(command: Sequence[str], watched: int) -> subprocess.Popen[str]:
    if command[: len(INTERPRETER)] != INTERPRETER:
        return start_alone(list(command), watched)
    output, end = os.pipe()
    with open(os.devnull, "rb") as nothing:
        streams = {0: nothing.fileno(), 1: end, 2: end, watched: watched}
        arguments = command[len(INTERPRETER) :]
        process = fork_server(OF_BROKERS).start(arguments, broker_environment(), streams, has_own_session=True)
    os.close(end)
    process.stdout = open(output, errors="replace")  # noqa: SIM115 - closed by RunningBroker
    return process


def start_brokers_as_forks(is_wanted: bool = True) -> None:
    RunningBroker._start_process = staticmethod(start_forked if is_wanted else start_alone)  # type: ignore[method-assign]  # for the tests only
