"""The table of `make faults`: what each row allows, what was measured, and docs/reliability.md."""

from __future__ import annotations

import datetime
import os
import platform
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.faults.checks import Verdict
    from tests.faults.running import Run

PATH = Path("docs/reliability.md")
COLUMNS = (
    "fault",
    "gap allowed",
    "measured",
    "longest gap between commits",
    "lost / duplicated / reordered",
    "replicas",
    "Apache Kafka 4.3 (KRaft)",
    "3.9 with ZooKeeper",
)
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"


# The fault, the gap that is allowed, and the figures of Apache Kafka 4.3 (KRaft) and 3.9 (ZooKeeper).
FAULTS: dict[str, tuple[str, str, str, str]] = {
    "kill": ("SIGKILL the leader, three times", "≤ 2 s", "7.9 – 9.4 s", "19 s"),
    "term": ("SIGTERM the leader, three times", "≤ 0.3 s", "0.32 – 0.36 s", "1.3 – 1.8 s"),
    "kill-controller": ("SIGKILL controller and leader in one, twice", "≤ 4 s", "11.4 – 11.7 s", "16 s"),
    "stop-leader": (
        "SIGSTOP the leader for 60 s, then go on",
        "new leader ≤ 5 s; with `socket.timeout.ms=10000` ≤ 11 s",
        "new leader 8 – 11 s; gap 60 s, with that setting 11.4 s",
        "61 s",
    ),
    "stop-controller": (
        "SIGSTOP controller and leader in one for 15 s",
        "new leader ≤ 5 s; with `socket.timeout.ms=10000` ≤ 11 s",
        "–",
        "–",
    ),
    "stop-follower": ("SIGSTOP a follower for 30 s", "≤ 5 s", "9.2 s", "up to 30 s"),
    "kill-all": (
        "SIGKILL everything, start again, 1,000 partitions",
        "≤ 8 s",
        "20 – 22 s with three partitions",
        "50 s",
    ),
    "bounces": ("five rolling hard bounces", "≤ 2 s each", "worst 13 s", "–"),
    "cut-off": ("leader cut from peers and ZooKeeper, not from clients", "≤ 8 s", "–", "–"),
    "cut-off-controller": ("the same, the leader is the controller", "≤ 8 s", "–", "–"),
    "cut-followers": ("leader cut from followers only", "≤ 8 s", "–", "–"),
    "cut-followers-controller": ("the same, the leader is the controller", "≤ 8 s", "–", "–"),
    "cut-sending": ("one way: nothing from the leader reaches peers and ZooKeeper", "≤ 8 s", "–", "–"),
    "cut-receiving": ("one way: nothing from peers and ZooKeeper reaches the leader", "≤ 8 s", "–", "–"),
    "zookeeper-down": ("ZooKeeper down for 60 s", "no errors; ≤ 8 s", "–", "–"),
    "sessions-expired": ("all sessions of ZooKeeper expired", "≤ 8 s", "–", "–"),
    "leader-changes": ("50 leader changes in a row", "logs identical", "–", "–"),
    "lost-tail": (
        "the last replica loses its tail and the others return",
        "logs identical; a truncated replica is never elected",
        "–",
        "–",
    ),
    "transaction-coordinator": (
        "SIGKILL the transaction coordinator in a commit, three times",
        "exactly one copy; commits ≤ 8 s",
        "–",
        "–",
    ),
    "group-coordinator": (
        "SIGKILL the group coordinator in a rebalance",
        "offsets never regress; commits ≤ 5 s",
        "–",
        "–",
    ),
    "slow-network": ("100 ms and 3 Mbit/s between brokers", "nothing lost, no leader change", "–", "–"),
    "loss": ("10 % loss between brokers", "nothing lost, no leader change", "–", "–"),
}


@dataclass
class Row:
    key: str
    measured: list[str] = field(default_factory=list)
    commit_gaps: list[float] = field(default_factory=list)
    verdict: Verdict | None = None
    failures: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def expect(self, what: str, seconds: float, at_most: float | None = None) -> None:
        """Record a time. A row goes on when it is too long, so that correctness is checked as well."""
        self.measured.append(f"{what} {seconds:.2f} s" if what else f"{seconds:.2f} s")
        progress(f"{what or 'gap'}: {seconds:.2f} s" + ("" if at_most is None else f" (allowed {at_most:g} s)"))
        if at_most is not None and seconds > at_most:
            self.failures.append(f"{what or 'gap'} {seconds:.2f} s, allowed {at_most:g} s")

    def require(self, what: str, is_met: bool) -> None:
        progress(f"{what}: {'yes' if is_met else 'NO'}")
        if not is_met:
            self.failures.append(f"not met: {what}")

    def note_commits(self, run: Run, begin_s: float) -> float:
        """The longest time between two commits of the transactional producer."""
        gap_s = run.transactional.gap_s(begin_s, time.monotonic())
        self.commit_gaps.append(gap_s)
        return gap_s

    def conclude(self, run: Run) -> None:
        """Stop the load, and check all that must hold in every row."""
        self.verdict = run.finish()
        progress(str(self.verdict))
        if not self.verdict.is_clean:
            self.failures.append(str(self.verdict))
        self.failures += run.problems[:5]
        if self.failures:
            run.keep_output(self.key)

    def line(self) -> str:
        verdict = self.verdict
        counts = "not checked" if verdict is None else f"{verdict.lost} / {verdict.duplicated} / {verdict.reordered}"
        replicas = "–" if verdict is None else "identical"
        if verdict is not None and verdict.differing_replicas:
            replicas = f"{len(verdict.differing_replicas)} partitions differ"
        commits = f"{max(self.commit_gaps):.2f} s" if self.commit_gaps else "–"
        measured = "; ".join(self.measured) or "not measured"
        if self.failures:
            measured += " – **failed**: " + "; ".join(each.replace("|", "/") for each in self.failures)
        fault, allowed, kafka_4, kafka_3 = FAULTS[self.key]
        cells = (fault, allowed, measured, commits, counts, replicas, kafka_4, kafka_3)
        return f"| {' | '.join(cells)} |"


class Report:
    def __init__(self) -> None:
        self.rows: list[Row] = []
        self._began_s = time.monotonic()

    @contextmanager
    def row(self, key: str) -> Iterator[Row]:
        """A row that ends with an exception is in the table, too."""
        row = Row(key)
        self.rows.append(row)
        progress(f"--- {len(self.rows)} of {len(FAULTS)}: {FAULTS[key][0]}")
        began_s = time.monotonic()
        try:
            yield row
        except BaseException as problem:
            row.failures.append(f"{type(problem).__name__}: {str(problem).splitlines()[0] if str(problem) else ''}")
            raise
        finally:
            row.seconds = time.monotonic() - began_s
            progress(f"{'FAILED' if row.failures else 'passed'} after {row.seconds:.0f} s")
        assert not row.failures, "; ".join(row.failures)

    def table(self) -> str:
        head = [
            f"| {' | '.join(COLUMNS)} |",
            "|---" * len(COLUMNS) + "|",
        ]
        minutes = (time.monotonic() - self._began_s) / 60
        order = list(FAULTS)
        failed = sum(bool(row.failures) for row in self.rows)
        summary = (
            f"Measured on {datetime.datetime.now(datetime.UTC):%Y-%m-%d} on {_machine()}, "
            f"load average {os.getloadavg()[1]:.1f}: {len(self.rows)} rows in {minutes:.0f} minutes, {failed} failed."
        )
        return "\n".join(
            [summary, "", *head, *(row.line() for row in sorted(self.rows, key=lambda row: order.index(row.key)))]
        )

    def write(self) -> None:
        text = PATH.read_text()
        before, rest = text.split(BEGIN)
        _, after = rest.split(END)
        PATH.write_text(f"{before}{BEGIN}\n{self.table()}\n{END}{after}")


def progress(text: str) -> None:
    """Also while pytest captures the output."""
    print(f"[{datetime.datetime.now(datetime.UTC):%H:%M:%S}] {text}", file=sys.__stderr__, flush=True)


def _machine() -> str:
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return f"{os.cpu_count()} cores, {memory_bytes / 2**30:.0f} GiB, {platform.system()} {platform.machine()}"
