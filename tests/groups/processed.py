"""The records that a group has processed, from the reports of its members."""

from __future__ import annotations

import collections
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.groups.running_member import Partition, Run, RunningMember


class Processed:
    def __init__(self, members: Iterable[RunningMember]) -> None:
        self._runs: dict[Partition, list[Run]] = collections.defaultdict(list)
        for member in members:
            for run in list(member.reports.runs):
                self._runs[run.topic, run.partition].append(run)

    def skipped(self, ends: dict[Partition, int]) -> list[tuple[Partition, int, int]]:
        """(partition, first offset, end offset) of the records that no member has processed."""
        gaps = []
        for partition, end in ends.items():
            reached = 0
            for run in sorted(self._runs[partition], key=lambda run: run.first_offset):
                if run.first_offset > reached:
                    gaps.append((partition, reached, run.first_offset))
                reached = max(reached, run.end_offset)
            if reached < end:
                gaps.append((partition, reached, end))
        return gaps

    @property
    def total(self) -> int:
        """Records processed, each as often as it was."""
        return sum(run.end_offset - run.first_offset for runs in self._runs.values() for run in runs)

    def repeated(self, ends: dict[Partition, int]) -> int:
        """How many more than there are, when none was skipped."""
        return self.total - sum(ends.values())
