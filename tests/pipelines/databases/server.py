"""A private PostgreSQL server, from Debian's packages, in a new folder, on its own socket and port.

Where the machine has none, Debian's package and the libraries that it lacks are fetched without being installed.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg

from odradek.pipelines.spark.sessions.jars import locked

if TYPE_CHECKING:
    from collections.abc import Iterator

WAIT_S = 60.0
FETCH_TIMEOUT_S = 300
INSTALLED = "/usr/lib/postgresql"


class NoPostgres(Exception):
    """PostgreSQL is not installed and cannot be fetched."""


@dataclass(frozen=True)
class Programs:
    """The paths of `initdb` and `postgres`, and of libraries that the machine lacks."""

    folder: Path
    libraries: Path | None = None

    @property
    def environment(self) -> dict[str, str]:
        added = {} if self.libraries is None else {"LD_LIBRARY_PATH": str(self.libraries)}
        return {"PATH": os.environ["PATH"], "LC_ALL": "C", "TZ": "UTC", **added}


@dataclass(frozen=True)
class Server:
    port: int
    sockets: Path

    def url(self, database: str = "postgres", user: str = "odradek") -> str:
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"

    def jdbc_url(self, database: str = "postgres") -> str:
        return f"jdbc:postgresql://127.0.0.1:{self.port}/{database}?user=odradek"

    def socket_url(self, database: str = "postgres") -> str:
        return f"postgresql://odradek@/{database}?host={self.sockets}&port={self.port}"

    def execute(self, text: str, database: str = "postgres") -> list[tuple[Any, ...]]:
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            cursor = connection.execute(text)
            return cursor.fetchall() if cursor.description else []


def find_programs() -> Programs:
    """The programs of Debian, on the PATH, or of an earlier or new download."""
    found = [path for path in Path(INSTALLED).glob("*/bin") if (path / "initdb").exists()]
    on_path = shutil.which("initdb")
    if found:
        return Programs(max(found, key=lambda path: float(path.parent.name)))
    if on_path is not None:
        return Programs(Path(on_path).resolve().parent)
    return download()


def download() -> Programs:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "odradek" / "postgresql"
    cache.mkdir(parents=True, exist_ok=True)
    with locked(cache / "lock"):
        if not list(cache.glob("root/usr/lib/postgresql/*/bin/initdb")):
            unpack(cache)
    (folder, *_others) = cache.glob("root/usr/lib/postgresql/*/bin")
    (libpq, *_others) = cache.glob("root/usr/lib/*/libpq.so.5")
    return Programs(folder, libpq.parent)


def unpack(cache: Path) -> None:
    """Unpacks Debian's packages, which `apt-get download` fetches without root."""
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise NoPostgres("no PostgreSQL is installed, and without apt-get none can be fetched")
    packages = needed_packages()
    files = cache / "packages"
    files.mkdir(exist_ok=True)
    run_or_refuse(["apt-get", "download", *packages], files)
    unfinished = cache / "unfinished"
    shutil.rmtree(unfinished, ignore_errors=True)
    for file in files.glob("*.deb"):
        run_or_refuse(["dpkg-deb", "-x", str(file), str(unfinished)], cache)
    shutil.rmtree(cache / "root", ignore_errors=True)
    unfinished.replace(cache / "root")


def needed_packages() -> list[str]:
    """The newest server, and those of its libraries that are not installed."""
    names = run_or_refuse(["apt-cache", "pkgnames", "postgresql-"], Path.cwd()).split()
    servers = [name for name in names if name.removeprefix("postgresql-").isdigit()]
    if not servers:
        raise NoPostgres("no PostgreSQL is installed, and apt knows no package of it (apt-get update?)")
    server = max(servers, key=lambda name: int(name.removeprefix("postgresql-")))
    options = [f"--no-{kind}" for kind in ("recommends", "suggests", "conflicts", "breaks", "replaces", "enhances")]
    listed = run_or_refuse(["apt-cache", "depends", "--recurse", *options, server], Path.cwd()).splitlines()
    libraries = sorted(
        {line for line in listed if line.startswith("lib") and not line.startswith("libc6") and "perl" not in line}
    )
    present = subprocess.run(
        ["dpkg-query", "-W", "-f", "${Package} ${Status}\n"], capture_output=True, text=True, check=False
    ).stdout
    installed = {line.split()[0] for line in present.splitlines() if line.endswith("install ok installed")}
    return [server, "libpq5", *(name for name in libraries if name not in {*installed, "libpq5"})]


def run_or_refuse(command: list[str], folder: Path) -> str:
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=FETCH_TIMEOUT_S, check=True,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired, OSError) as error:
        reason = getattr(error, "stderr", None) or str(error)
        raise NoPostgres(f"no PostgreSQL is installed, and {command[0]} failed: {reason.strip()[-200:]}") from None
    return done.stdout


def server_user() -> dict[str, Any]:
    """The user to run PostgreSQL as, because it refuses to run as root."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        try:
            found = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": found.pw_uid, "group": found.pw_gid, "extra_groups": []}
    raise NoPostgres("PostgreSQL does not run as root, and there is no user `nobody`")


def reachable(programs: Programs, folder: Path) -> Programs:
    """A copy that another user may execute, because root's cache is not readable for others."""
    if programs.libraries is None:
        return programs
    root = next(each for each in programs.folder.parents if each.name == "root")
    shutil.copytree(root, folder / "root", symlinks=True)
    copy = folder / "root"
    return Programs(copy / programs.folder.relative_to(root), copy / programs.libraries.relative_to(root))


@contextmanager
def running_server() -> Iterator[Server]:
    programs, owner = find_programs(), server_user()
    folder = Path(tempfile.mkdtemp(prefix="odradek-pg-"))
    try:
        if owner:
            os.chown(folder, owner["user"], owner["group"])
            programs = reachable(programs, folder)
        made = subprocess.run(
            [programs.folder / "initdb", "-D", folder / "data", "-U", "odradek", "-A", "trust", "-E", "UTF8", "-N"],
            env=programs.environment, cwd=folder, capture_output=True, text=True, check=False, **owner,
        )  # fmt: skip
        assert made.returncode == 0, made.stderr
        with started(programs, owner, folder) as server:
            yield server
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def started(programs: Programs, owner: dict[str, Any], folder: Path) -> Iterator[Server]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        server = Server(free.getsockname()[1], folder)
    settings = {"listen_addresses": "127.0.0.1", "fsync": "off", "timezone": "America/Lima", "max_connections": "30"}
    options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [programs.folder / "postgres", "-D", folder / "data", "-k", folder, "-p", str(server.port), *options],
            env=programs.environment, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **owner,
        )  # fmt: skip
    try:
        await_answer(server, process, folder / "log")
        yield server
    finally:
        process.send_signal(signal.SIGINT)  # its fast shutdown: connections are closed, not waited for
        try:
            process.wait(WAIT_S)
        finally:
            process.kill()


def await_answer(server: Server, process: subprocess.Popen[bytes], log: Path) -> None:
    give_up_at = time.monotonic() + WAIT_S
    while True:
        try:
            server.execute("select 1")
        except psycopg.OperationalError:
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < give_up_at, log.read_text()
            time.sleep(0.05)  # a poll's pause
        else:
            return
