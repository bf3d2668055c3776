"""Every broker that tests start in their own process is a fork, as those of the fixtures of `odradek.testing` are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.local import child_process
from odradek.local.child_process import StartedProcess, StartProcess, odradek_command, start_process_alone
from odradek.local.prepared import prepared_process

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

BROKER = odradek_command("broker")


def start_forked(command: Sequence[str], watched: int, environment: Mapping[str, str] | None) -> StartedProcess:
    if list(command[: len(BROKER)]) == BROKER:
        return prepared_process().start_child(command[len(odradek_command()) :], watched, environment)
    return start_process_alone(command, watched, environment)


def start_brokers_as_forks(is_wanted: bool = True) -> None:
    start: StartProcess = start_forked if is_wanted else start_process_alone
    child_process.start_process_alone = start  # type: ignore[assignment]  # its Popen is one of the processes
