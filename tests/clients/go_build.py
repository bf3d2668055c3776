"""Programs in Go that tests use, built once into the cache: `go build` of a directory with a go.mod of its own."""

import os
import shutil
import subprocess
from pathlib import Path

from tests.jvm.build_cache import build_once, cache_directory, content_digest


def missing() -> str | None:
    """What this machine lacks, in one line; None when programs can be built."""
    return None if shutil.which("go") else "needs go on the PATH for franz-go"


def go_program(source_directory: Path, name: str) -> Path:
    """The program. A directory per content: another checkout's run may still use what this one has changed."""
    sources = [*source_directory.glob("*.go"), source_directory / "go.mod", source_directory / "go.sum"]

    def build(directory: Path) -> None:
        _build(source_directory, directory / name)

    return build_once(cache_directory() / f"{name}-{content_digest(sources)}", sources, build) / name


def _build(source_directory: Path, program: Path) -> None:
    command = ["go", "build", "-trimpath", "-buildvcs=false", "-o", str(program), "."]
    # -mod=readonly: go.mod and go.sum are the locked truth
    environment = {**os.environ, "GOFLAGS": "-mod=readonly"}
    done = subprocess.run(
        command,
        cwd=source_directory,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"building {program.name} failed: {(done.stdout + done.stderr).strip()[-2000:]}")
