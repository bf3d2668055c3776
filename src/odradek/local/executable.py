"""The command with which the user can start odradek: its name if it is on PATH, otherwise its path."""

from __future__ import annotations

import os
import shlex
import shutil
import sys


def command_name() -> str:
    """`odradek`, or what to type instead in the current directory, such as `.venv/bin/odradek` after `make up`."""
    if shutil.which("odradek") is not None:
        return "odradek"
    installed = os.path.join(os.path.dirname(sys.executable), "odradek")
    for path in (sys.argv[0], installed):
        if os.path.basename(path) == "odradek" and os.access(path, os.X_OK) and os.path.isfile(path):
            return shlex.quote(nearest(path))
    return f"{shlex.quote(nearest(sys.executable))} -m odradek"


def nearest(path: str) -> str:
    """The path relative to the current directory, or the absolute path if that is shorter."""
    whole = os.path.abspath(path)
    relative = os.path.relpath(whole)
    if os.sep not in relative:
        relative = os.path.join(os.curdir, relative)  # a shell searches a bare name on PATH
    return min(relative, whole, key=len)
