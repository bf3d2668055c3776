"""Commits in memory: all that were asked for, or none."""

from odradek.metadata.changes import ProducerIdsAllocated
from odradek.metadata.recent_commits import MAX_COMMITS, RecentCommits
from odradek.metadata.store import Commit


def commit(version: int) -> Commit:
    return Commit(version, 1, (ProducerIdsAllocated(version),))


def test_all_commits_after_a_version_are_returned_in_order() -> None:
    recent = RecentCommits()
    for version in (4, 5, 6):
        recent.add(commit(version))
    assert recent.after(3, 6) == [commit(4), commit(5), commit(6)]
    assert recent.after(5, 6) == [commit(6)]
    assert recent.after(6, 6) == []


def test_a_commit_that_is_missing_makes_the_others_useless() -> None:
    recent = RecentCommits()
    for version in (4, 6):
        recent.add(commit(version))
    assert recent.after(3, 6) is None, "between them"
    assert recent.after(2, 4) is None, "before them"
    assert recent.after(5, 7) is None, "after them"
    assert recent.after(5, 6) == [commit(6)]


def test_only_the_newest_commits_are_kept() -> None:
    recent = RecentCommits()
    for version in range(1, 2 * MAX_COMMITS + 1):
        recent.add(commit(version))
    newest = 2 * MAX_COMMITS
    assert recent.after(newest - MAX_COMMITS - 1, newest) is None
    assert recent.after(newest - MAX_COMMITS, newest) == [commit(MAX_COMMITS + 1 + each) for each in range(MAX_COMMITS)]
    assert recent.after(0, 10**9) is None
