"""Two versions of Odradek's sources: this checkout, and a commit in a temporary git worktree."""

import contextlib
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.odradek_broker import environment_of

ROOT = Path(__file__).parent.parent
REQUIREMENTS = "locks/runtime.txt"


class VersionError(RuntimeError):
    """A commit does not exist, or its sources cannot be measured."""


@dataclass(frozen=True, slots=True)
class Version:
    title: str
    source: Path
    requirements: str
    """The text of its locked requirements; empty where it has none."""


def git(*arguments: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(ROOT), *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            start_new_session=True,  # Ctrl-C in a terminal reaches the whole process group: removal must complete
        )
    except OSError as failure:
        raise VersionError(f"git cannot be started: {failure.strerror}") from None
    if done.returncode != 0:
        raise VersionError(f"git {arguments[0]} failed: {done.stderr.strip()}")
    return done.stdout.strip()


def commit_of(reference: str) -> str:
    try:
        return git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{reference}^{{commit}}")
    except VersionError:
        raise VersionError(f"no such commit: {reference}; give a branch, a tag or a hash of this repository") from None


def this_checkout() -> Version:
    title = f"this checkout ({git('describe', '--always', '--dirty=, with changes', '--exclude=*')})"
    return _compiled(title, ROOT)


@contextlib.contextmanager
def checked_out(reference: str, directory: Path) -> Iterator[Version]:
    """The sources of a commit in a worktree below `directory`, which is removed at the end."""
    commit = commit_of(reference)
    short = git("rev-parse", "--short", commit)
    directory.mkdir(parents=True, exist_ok=True)
    parent = Path(tempfile.mkdtemp(prefix="version-", dir=directory.resolve()))  # git has another working directory
    try:
        git("worktree", "add", "--detach", str(parent / short), commit)
        yield _compiled(reference if reference == short else f"{reference} ({short})", parent / short)
    finally:
        _remove(parent)


def _remove(parent: Path) -> None:
    """A further signal must not leave the worktree behind, nor its entry in the repository."""
    handlers = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        shutil.rmtree(parent, ignore_errors=True)
        git("worktree", "prune")
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _compiled(title: str, root: Path) -> Version:
    """Byte-compile the sources, so that no start is slower because it is the first, and check that they are loaded."""
    source = root / "src"
    if not (source / "odradek").is_dir():
        raise VersionError(f"{title} has no src/odradek")
    subprocess.run([sys.executable, "-m", "compileall", "-q", str(source)], check=False, stdout=subprocess.DEVNULL)
    done = subprocess.run(
        [sys.executable, "-c", "import odradek; print(odradek.__file__)"],
        env=environment_of(source),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0 or not Path(done.stdout.strip()).is_relative_to(source):
        found = done.stdout.strip() or done.stderr.strip()
        raise VersionError(f"the sources of {title} cannot be imported: found {found}")
    requirements = root / REQUIREMENTS
    return Version(title, source, requirements.read_text() if requirements.exists() else "")


def changed_requirements(before: str, after: str) -> list[str]:
    """The packages whose locked versions differ, as `name 1.0 → 2.0`; a missing one is shown as –."""
    old, new = _pinned(before), _pinned(after)
    return [
        f"{name} {old.get(name, '–')} → {new.get(name, '–')}"
        for name in sorted(old.keys() | new.keys())
        if old.get(name) != new.get(name)
    ]


def _pinned(text: str) -> dict[str, str]:
    """Name and version of each `name==version` line; hashes and markers are ignored."""
    words = [line.split()[0] for line in text.splitlines() if line[:1].isalnum()]
    return dict(word.split("==", 1) for word in words if "==" in word)
