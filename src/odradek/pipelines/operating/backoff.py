"""When to restart a failed pipeline. Pure: the caller passes the time and a random number."""

from __future__ import annotations

from enum import StrEnum

from odradek.conventions.dataclass import dataclass

TAKEN_OVER = "another run of this pipeline took over"  # said by the error of a run that must not start again


class Retry(StrEnum):
    """Whether a retry after a failure may succeed."""

    LIKELY = "likely"  # an external system is unavailable: brokers, the database, Spark's process
    PERHAPS = "perhaps"  # a batch failed for an unknown reason
    NEVER = "never"  # a retry fails until the definition, its checkpoint or the data changes


@dataclass(frozen=True, slots=True)
class Backoff:
    """An exponential back-off from `first_s` to `most_s`, with jitter so that many pipelines do not restart at once."""

    first_s: float = 1.0
    most_s: float = 300.0
    spread: float = 0.25
    well_s: float = 60.0  # a run of this length that finished batches resets the failure count
    most_failures: int = 10  # limit for consecutive failures with Retry.PERHAPS
    most_failed_starts: int = 3  # the same limit for a pipeline that has never run

    def failures_after(self, failures: int, ran_s: float, *, has_progressed: bool) -> int:
        """The number of consecutive failures after one more; a long run without a finished batch does not reset it."""
        return 1 if has_progressed and ran_s >= self.well_s else failures + 1

    def delay_s(self, failures: int, chance: float) -> float:
        """The delay after this many consecutive failures; `chance` is a random number between 0 and 1."""
        doubled = self.first_s * 2.0 ** min(failures - 1, 62)
        return min(self.most_s, doubled) * (1 - self.spread + 2 * self.spread * chance)

    def gives_up(self, retry: Retry, failures: int, *, has_run: bool) -> bool:
        most = self.most_failures if has_run else self.most_failed_starts
        return retry is Retry.NEVER or (retry is Retry.PERHAPS and failures >= most)
