"""One program in processes that differ in what must not matter: hashes of strings, and addresses of objects."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
ENVIRONMENTS = (
    {"PYTHONHASHSEED": "0"},
    {"PYTHONHASHSEED": "1", "PYTHONMALLOC": "malloc"},
)


def outputs(program: str) -> list[str]:
    """What the program prints in each process. They run at the same time."""
    running = [
        subprocess.Popen(
            [sys.executable, "-c", program],
            cwd=ROOT,
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for environment in ENVIRONMENTS
    ]
    printed = [process.communicate()[0] for process in running]
    assert [process.returncode for process in running] == [0] * len(running)
    return printed
