"""`odradek pipeline start`: pipelines as background processes, restarted when they fail."""

from __future__ import annotations

import subprocess
import time
from typing import TYPE_CHECKING

import click

from odradek.cli.framework.commands import command
from odradek.cli.framework.options import format_option, yes_option
from odradek.cli.framework.output import note, print_result
from odradek.cli.pipeline.options import (
    child_arguments,
    chosen_metrics,
    chosen_pipeline,
    engine_option,
    from_option,
    metrics_options,
    pipeline_options,
    require_spark,
)
from odradek.conventions.failures import Failure, without_prefix
from odradek.local.child_process import odradek_command
from odradek.pipelines.operating.state_folders import LOG, folder_of
from odradek.pipelines.operating.status import ENDED, State
from odradek.pipelines.operating.status_files import read_status

if TYPE_CHECKING:
    from collections.abc import Sequence


POLL_S = 0.1


@command(
    examples=[
        ("in the background, restarted when it fails", "odradek pipeline start pipeline.yml"),
        ("several at once", "odradek pipeline start rigs.yml billing.yml"),
        ("with metrics for Prometheus", "odradek pipeline start pipeline.yml --metrics-port 9464"),
    ]
)
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path())
@engine_option
@pipeline_options
@from_option
@yes_option
@metrics_options
@format_option
def start(
    files: tuple[str, ...], engine: str | None, from_positions: tuple[str, ...], yes: bool, as_json: bool
) -> None:
    """Start pipelines in the background, each in its own process.

    Returns when they run, or reports why one does not. One that fails later is restarted, with increasing pauses.
    """
    require_spark()
    metrics = chosen_metrics()
    if len(files) > 1 and metrics.port:
        raise click.UsageError("pipelines cannot share a port for metrics; start them one by one, or use port 0")
    found = {file: chosen_pipeline(file, engine) for file in dict.fromkeys(files)}
    names = [each.name for each in found.values()]
    twice = next((each for each in names if names.count(each) > 1), None)
    if twice is not None:
        raise Failure(f"two of these pipelines are named {twice}; names must differ")
    for file, each in found.items():
        if each.engine == "batch":
            raise Failure(f"{each.name} is a batch, which ends by itself; run it with `odradek pipeline run {file}`")
        running = read_status(each.name)
        if running is not None and running.state not in ENDED:
            raise Failure(
                f"{each.name} {running.state} already (pid {running.pid}); `odradek pipeline stop {each.name}`"
            )
    if from_positions:
        from odradek.cli.pipeline.reset import check_reset, forget_and_begin

        for each in found.values():
            check_reset(each, from_positions)
        for each in found.values():
            forget_and_begin(each, from_positions, yes)
    processes = {
        each.name: launch(file, each.name, [*child_arguments(engine, each.name), *metrics.arguments])
        for file, each in found.items()
    }
    failures = [each for each in (wait_until_running(name, processes[name], as_json) for name in names) if each]
    if failures:
        raise Failure("; ".join(failures))


def launch(file: str, name: str, arguments: Sequence[str]) -> subprocess.Popen[bytes]:
    folder = folder_of(name)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / LOG).open("ab") as log:
        return subprocess.Popen(
            odradek_command("pipeline", "run", file, "--restart", f"--state-folder={folder}", *arguments),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def wait_until_running(name: str, process: subprocess.Popen[bytes], as_json: bool) -> str | None:
    """Wait until the pipeline runs; returns the reason if it does not. Its notes are printed."""
    printed = ""
    while True:
        status = read_status(name)
        mine = status if status is not None and status.pid == process.pid else None
        if mine is not None and mine.note and mine.note != printed:
            printed = mine.note
            note(f"{name}: {printed}")
        if mine is not None and mine.state is State.RUNNING:
            hint = f"see `odradek pipeline status`, `odradek pipeline watch {name}`"
            print_result(mine.as_object(), f"{name} runs (pid {process.pid}); {hint}", as_json=as_json)
            return None
        if process.poll() is not None:
            status = read_status(name)
            error = status.last_error if status is not None and status.pid == process.pid else None
            return f"{name} does not run: {error or last_line(name)}"
        time.sleep(POLL_S)


def last_line(name: str) -> str:
    """Last line of the log, for a process that ended before it had a status."""
    lines = (folder_of(name) / LOG).read_text(encoding="utf-8", errors="replace").splitlines()
    return without_prefix(lines[-1]) if lines else "it ended without output"
