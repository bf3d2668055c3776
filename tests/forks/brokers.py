"""Brokers of `odradek.testing` as forks: a broker spends most of its start on importing modules.

`tests/testing`, `tests/deploy` and others start brokers as users do.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from odradek.local.child_process import ChildProcess, odradek_command
from tests.forks.client import OF_BROKERS, fork_server

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Mapping, Sequence

BROKER = odradek_command("broker")
start_alone = ChildProcess._start_process


def start_forked(command: Sequence[str], watched: int, environment: Mapping[str, str] | None) -> subprocess.Popen[str]:
    if list(command[: len(BROKER)]) != BROKER:
        return start_alone(command, watched, environment)
    output, output_end = os.pipe()
    log, log_end = os.pipe()
    with open(os.devnull, "rb") as nothing:
        streams = {0: nothing.fileno(), 1: output_end, 2: log_end, watched: watched}
        arguments = command[len(BROKER) - 1 :]
        process = fork_server(OF_BROKERS).start(arguments, environment or os.environ, streams, has_own_session=True)
    os.close(output_end)
    os.close(log_end)
    process.stdout = open(output, errors="replace")  # noqa: SIM115 - closed by ChildProcess
    process.stderr = open(log, errors="replace")  # noqa: SIM115 - closed by ChildProcess
    return process


def start_brokers_as_forks(is_wanted: bool = True) -> None:
    ChildProcess._start_process = staticmethod(start_forked if is_wanted else start_alone)  # type: ignore[method-assign]  # for the tests only
