"""Profiles of a broker by py-spy. A profiled run is not one of the measured runs, because profiling slows it down."""

import contextlib
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

SUFFIXES = {"flamegraph": ".svg", "speedscope": ".speedscope.json", "raw": ".txt"}
ATTACH_S = 1.0


class ProfileError(RuntimeError):
    """py-spy is not installed, or may not read the memory of another process."""


def py_spy() -> str:
    beside = Path(sys.executable).with_name("py-spy")
    found = str(beside) if beside.exists() else shutil.which("py-spy")
    if found is None:
        raise ProfileError("py-spy is not installed")
    return found


@contextlib.contextmanager
def recorded(pid: int, path_without_suffix: Path, form: str) -> Iterator[Path]:
    """Samples the process until the end of the block, then writes the file whose path is yielded."""
    path = path_without_suffix.with_name(path_without_suffix.name + SUFFIXES[form])
    path.parent.mkdir(parents=True, exist_ok=True)
    command = [py_spy(), "record", "--pid", str(pid), "--output", str(path), "--format", form, "--rate", "200"]
    recorder = subprocess.Popen(
        [*command, "--subprocesses", "--duration", "unlimited"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        time.sleep(ATTACH_S)
        if recorder.poll() is not None:
            raise ProfileError(_failure_text(recorder))
        yield path
    finally:
        if recorder.poll() is None:
            recorder.send_signal(signal.SIGINT)  # py-spy then writes its file and ends
        _, _ = recorder.communicate(timeout=60)


def _failure_text(recorder: "subprocess.Popen[str]") -> str:
    output = recorder.stderr.read() if recorder.stderr is not None else ""
    return f"py-spy could not profile the broker: {output.strip() or 'no error output'}"
