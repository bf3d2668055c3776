"""The newest commits of one store object, so that the broker does not read its own commits back from the file. Pure.

A version has one commit for ever, so a commit that is held here is the commit of its version. Commits of other stores
are missing here: `after` returns commits only if it has all of them up to the newest version of the file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from odradek.metadata.store import Commit

MAX_COMMITS = 16


class RecentCommits:
    def __init__(self) -> None:
        self._commits: dict[int, Commit] = {}  # by version, in ascending order

    def add(self, commit: Commit) -> None:
        """A commit that is in the file for certain."""
        self._commits[commit.version] = commit
        if len(self._commits) > MAX_COMMITS:
            del self._commits[next(iter(self._commits))]

    def after(self, version: int, newest_version: int) -> list[Commit] | None:
        """The commits after `version` to `newest_version`, or None when some of them are not held here."""
        if newest_version - version > MAX_COMMITS:
            return None
        found = [self._commits.get(each) for each in range(version + 1, newest_version + 1)]
        held = [commit for commit in found if commit is not None]
        return held if len(held) == len(found) else None
