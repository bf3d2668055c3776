"""Worktrees of other commits, and differences of their dependencies."""

from pathlib import Path

import pytest

from bench.versions import VersionError, changed_requirements, checked_out, commit_of, git, this_checkout


def test_commit_is_checked_out_and_removed_after_an_interrupt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    directory = tmp_path / "build"
    context = checked_out("HEAD", Path("build"))
    version = context.__enter__()
    assert version.source.is_relative_to(directory)
    assert (version.source / "odradek" / "__init__.py").exists()
    assert list((version.source / "odradek" / "__pycache__").glob("__init__.*.pyc"))
    assert version.title == f"HEAD ({git('rev-parse', '--short', 'HEAD')})"
    assert str(directory) in git("worktree", "list")
    assert not context.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert list(directory.iterdir()) == []
    assert str(directory) not in git("worktree", "list")


def test_this_checkout_is_measured_with_its_changes() -> None:
    version = this_checkout()
    assert version.source == Path(__file__).parents[2] / "src"
    assert version.title.startswith(f"this checkout ({git('rev-parse', '--short', 'HEAD')}")


@pytest.mark.parametrize("reference", ["no-such-branch", "--help", "HEAD:README.md"])
def test_reference_that_is_no_commit_is_refused(reference: str) -> None:
    with pytest.raises(VersionError, match=f"no such commit: {reference}"):
        commit_of(reference)


def test_changed_dependencies_are_named() -> None:
    before = (
        "click==8.1 \\\n    --hash=sha256:1\nuvloop==0.22 ; sys_platform != 'win32' \\\n    --hash=sha256:2\nrich==1\n"
    )
    after = "click==8.1 \\\n    --hash=sha256:9\nuvloop==0.23\npsutil==7.0\n"
    assert changed_requirements(before, after) == ["psutil – → 7.0", "rich 1 → –", "uvloop 0.22 → 0.23"]
    assert changed_requirements(before, before) == []
