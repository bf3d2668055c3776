"""franz-go's driver: the Go program in tests/clients/go, built once into the cache."""

import os
import shutil
import subprocess
from pathlib import Path

from tests.clients.drivers.driver import LineDriver
from tests.jvm.build_cache import build_once, cache_directory

SOURCE_DIRECTORY = Path(__file__).parent.parent / "go"


def missing() -> str | None:
    """What this machine lacks, in one line; None when the driver can be built."""
    return None if shutil.which("go") else "needs go on the PATH for franz-go"


def _build(directory: Path) -> None:
    command = ["go", "build", "-trimpath", "-buildvcs=false", "-o", str(directory / "driver"), "."]
    # -mod=readonly: go.mod and go.sum are the locked truth
    environment = {**os.environ, "GOFLAGS": "-mod=readonly"}
    done = subprocess.run(
        command,
        cwd=SOURCE_DIRECTORY,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"building franz-go's driver failed: {(done.stdout + done.stderr).strip()[-2000:]}")


def franz_go_driver(bootstrap_servers: str) -> LineDriver:
    sources = [*SOURCE_DIRECTORY.glob("*.go"), SOURCE_DIRECTORY / "go.mod", SOURCE_DIRECTORY / "go.sum"]
    directory = build_once(cache_directory() / "franz-go", sources, _build)
    return LineDriver([str(directory / "driver"), bootstrap_servers])
