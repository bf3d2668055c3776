"""Every broker that tests start in their own process is a fork, as those of the fixtures of `odradek.testing` are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.local import child_process
from odradek.local.child_process import odradek_command, start_process_alone, start_process_as_fork

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Mapping, Sequence

BROKER = odradek_command("broker")


def start_forked(command: Sequence[str], watched: int, environment: Mapping[str, str] | None) -> subprocess.Popen[str]:
    is_broker = list(command[: len(BROKER)]) == BROKER
    return (start_process_as_fork if is_broker else start_process_alone)(command, watched, environment)


def start_brokers_as_forks(is_wanted: bool = True) -> None:
    child_process.start_process_alone = start_forked if is_wanted else start_process_alone
